"""Scores on arcs, softmax over in-arcs, and attention in one pass."""
