"""The embedded stack: starts, watches and stops every process of a one-machine Prefold."""
