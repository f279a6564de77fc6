"""``prefold doctor``: what of a deployment is not as promised, and how to mend it."""
