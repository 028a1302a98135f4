"""Tables of numbers in text files, read at memory speed."""
