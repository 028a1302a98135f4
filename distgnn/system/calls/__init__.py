"""Functions called on ranks: packed, run there, their results and errors brought back."""
