"""Stored turns read: sentences, values and cues, in many languages, made safe first."""
