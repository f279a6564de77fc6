"""How much of what answers a question is found. ``./run bench recall``."""
