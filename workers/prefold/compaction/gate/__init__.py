"""What a summary must be before it may stand for turns."""
