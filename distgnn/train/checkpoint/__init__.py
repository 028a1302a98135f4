"""What a run needs to go on, and its files."""
