"""What of BEAM's instructions, preferences and changed values stands in the context that is served for its questions."""
