"""What one turn, read, search, build and session cost: the figures that ``prefold plan`` multiplies."""
