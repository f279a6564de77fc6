"""Summaries by a model: runs of turns, their summaries, and the tree that these are merged to."""
