"""Benchmarks: each hop against its floor, measured in the same run. ``./run bench``."""
