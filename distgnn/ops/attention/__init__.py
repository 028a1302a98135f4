"""Attention over the arcs of all ranks."""
