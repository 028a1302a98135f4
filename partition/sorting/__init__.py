"""Bucket sorts of edges, in memory and on disk, and renumbering of vertices."""
