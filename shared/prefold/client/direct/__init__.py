"""The client on Redis itself, without a gateway. Nothing of it is imported before ``direct`` is called."""
