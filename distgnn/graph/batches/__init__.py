"""Cluster batches: steps on some of the vertices with the last rows of all others held, on the same parts and plans."""

from distgnn.graph.batches.batch_graph import BatchGraph
from distgnn.graph.batches.batches import Batches

__all__ = ["BatchGraph", "Batches"]
