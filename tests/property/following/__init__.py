"""The real scripts, walked at random on a real server, and what the protocol's model decides in the same state."""
