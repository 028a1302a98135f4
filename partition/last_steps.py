"""A program that compiles what comes last in a cut: it cuts and writes a small graph into a folder (see ahead.py)."""

import sys

import numpy as np

from distgnn.datasets import GraphData
from distgnn.partition.ahead import end_with_parent
from distgnn.partition.cmr.method import EFFORTS, refine_borders
from distgnn.partition.core.edges import endpoint_degrees
from distgnn.partition.core.owners import balanced_owners
from distgnn.partition.core.shares import part_shares
from distgnn.partition.core.sorted_edges import ordered_edges
from distgnn.partition.core.vertex_cut import VertexCut
from distgnn.partition.pipeline import write_partition


def compile_last_steps(folder: str) -> None:
    """Move the borders of a small cut by flows, choose owners and write the parts, in a process of its own."""
    size = 400
    draw = np.random.default_rng(0)
    ends = np.sort(draw.integers(0, size, (2, 4 * size)), axis=0)
    feats, labels = draw.random((size, 4), dtype=np.float32), np.arange(size) % 2
    graph = GraphData.from_arrays(ends, directed=False, feats=feats, labels=labels)
    edge_list, shares = graph.edge_list(), part_shares(2, None)
    degrees = endpoint_degrees(edge_list)
    one = np.zeros(size, dtype=np.int32)
    edges, order, vertices = ordered_edges(edge_list, degrees, one)
    parts = (np.arange(len(order)) * 2 // len(order)).astype(np.int16)
    parts[order] = refine_borders(edges, parts, [one], degrees[vertices], shares, EFFORTS["fast"])
    cut = VertexCut(2, parts, balanced_owners(edge_list, parts, shares))
    write_partition(graph, edge_list, cut, f"{folder}/parts")


if __name__ == "__main__":
    end_with_parent(sys.argv[1])
    compile_last_steps(sys.argv[1])
