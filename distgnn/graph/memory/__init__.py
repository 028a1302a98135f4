"""What a rank's memory is at its peak, block by block and by name."""
