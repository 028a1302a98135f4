"""Pairs of vertices whose edges are predicted, and negatives drawn beside them."""
