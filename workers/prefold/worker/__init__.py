"""The RQ worker process, what its jobs share, and the embed job."""
