"""The embedded vector store: one process that owns qdrant-edge shards and speaks a part of Qdrant's REST API."""
