"""Splits of edges: pairs of vertices to be predicted, held out of the graph that passes messages."""
