"""The same from clusters found in the edge stream, without an adjacency."""
