"""Turns what the sessions' event streams and ``due`` sets say into jobs for the workers."""
