"""Sessions at their pace, workers that write summaries, and when the standby stops being ready: simulated by events."""
