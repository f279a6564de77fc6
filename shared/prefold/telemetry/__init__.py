"""Metrics, names of log events, and traces of all processes."""
