"""Tables of numbers in text files."""
