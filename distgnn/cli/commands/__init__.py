"""The commands of the program; those that share their tables or their checks stand in one file."""
