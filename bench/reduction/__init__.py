"""How much smaller a context is after a swap, and which builds no swap used. ``./run bench reduction``."""
