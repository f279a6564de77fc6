"""``prefold cost``: what model calls took, the price table in force, and which way is cheaper."""
