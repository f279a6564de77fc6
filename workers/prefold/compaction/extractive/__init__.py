"""The offline engine: quotes the sentences that carry most of a conversation."""
