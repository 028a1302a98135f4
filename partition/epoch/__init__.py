"""The cost of an epoch under measured prices, and cuts that minimise it."""
