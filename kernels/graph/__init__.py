"""Aggregation over compressed sparse rows: sums, means, extremes, by rows or by blocks."""
