"""The command ``prefold``."""
