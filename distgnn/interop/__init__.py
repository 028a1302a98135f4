"""Other libraries' graphs and models."""
