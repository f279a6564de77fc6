"""``prefold keys``: makes, lists, rotates and revokes API keys."""
