"""Replays a recorded conversation against a gateway and checks every context that it serves."""
