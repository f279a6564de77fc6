"""A corpus of injections: texts that try to get into a summary as orders, and what an obedient model makes of them."""
