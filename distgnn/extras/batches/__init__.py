"""Cluster batches: steps on some of the vertices with the last rows of all others held, on the same parts and plans."""
