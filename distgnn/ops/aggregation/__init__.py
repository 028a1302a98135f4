"""Aggregation over the arcs of all ranks as differentiable functions."""
