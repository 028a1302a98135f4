"""How a setting is declared, checked against its choices, and read from a file."""
