"""The kernels of the second half of a cut, for the process that compiles them meanwhile (kernels/runtime/ahead.py).

Each stage runs on a small graph, the last one first: owners and files of a cut dealt at random, moves of single edges,
then a whole cut, which the first process meets in its moves of groups.
"""

import sys
from pathlib import Path

import numpy as np

from distgnn.datasets.edge_list import EdgeList
from distgnn.datasets.graph_data import GraphData
from distgnn.kernels.runtime.ahead import end_with_parent
from distgnn.partition.core.vertex_cut import part_shares
from distgnn.partition.pipeline import partition_graph
from distgnn.partition.refinement.edge_moves import refine

NUM_VERTICES, NUM_PARTS = 64, 2


def compile_last_first(folder: Path) -> None:
    """Run the stages, and leave the parts in `folder`."""
    edges = np.random.default_rng(0).integers(0, NUM_VERTICES, (8 * NUM_VERTICES, 2))
    graph = GraphData("small", NUM_VERTICES, edges, directed=False)
    partition_graph(graph, NUM_PARTS, folder / "dealt", "random")
    edge_list: EdgeList = graph.edge_list()
    refine(edge_list, np.zeros(edge_list.num_edges, np.int16), part_shares(NUM_PARTS))
    partition_graph(graph, NUM_PARTS, folder / "cut")


if __name__ == "__main__":
    end_with_parent(sys.argv[1])
    compile_last_first(Path(sys.argv[1]))
