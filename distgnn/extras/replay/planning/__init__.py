"""How many ranks, which schedule, what memory; without the data."""
