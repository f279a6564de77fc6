"""The HTTP API: one process, any number of them."""
