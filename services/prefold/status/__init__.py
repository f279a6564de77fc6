"""``prefold status`` and ``prefold top``: what the running parts do."""
