"""``prefold plan``: what a load needs, with the arithmetic."""
