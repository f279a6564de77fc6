"""Random histories of sessions on a real server: who writes them, what must be true of them, and what is promised."""
