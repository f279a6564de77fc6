"""``prefold dead-letters``: work that was set aside, for whoever looks after it."""
