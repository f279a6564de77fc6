"""What outlives a conversation: facts of its user, the digest of a session that has ended, their vectors."""
