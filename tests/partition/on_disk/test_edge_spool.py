"""Edges on disk are those of `GraphData.edge_list`, in its order, with the same degrees."""

import itertools

import numpy as np
import pytest
from cut_graphs import random_graph

from distgnn.datasets import GraphData
from distgnn.errors import InputError
from distgnn.partition.on_disk import edge_spool
from distgnn.partition.on_disk.edge_spool import spool_edges
from distgnn.partition.on_disk.workspace import Workspace


@pytest.mark.parametrize("direction", ["stored", "both", "reversed"])
@pytest.mark.parametrize("directed", [False, True])
def test_edges_are_those_of_memory(directed, direction, tmp_path, monkeypatch):
    for name in ("BLOCK_EDGES", "BUCKET_EDGES"):
        monkeypatch.setattr(edge_spool, name, 50)
    merges = direction == "both" and directed
    graph = random_graph(1, directed=directed, weighted=not merges)
    for self_loops, number in zip(("keep", "add", "remove"), itertools.count()):
        expected = graph.edge_list(direction, self_loops)
        with Workspace(tmp_path / str(number)) as space:
            found = spool_edges(graph, direction, self_loops, space, lambda done, total: None)
            assert (found.two_way, found.num_arcs, found.report) == (
                expected.two_way,
                expected.num_arcs,
                expected.report,
            )
            for name in ("src", "dst", "edge_ids", "edge_weight"):
                np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), err_msg=name)
            for name in ("in_degrees", "out_degrees"):
                np.testing.assert_array_equal(getattr(found, name)(), getattr(expected, name)(), err_msg=name)
    assert not list(tmp_path.iterdir())


def test_weights_are_not_merged(tmp_path):
    graph = GraphData.from_arrays([[0, 1], [1, 0]], edge_weight=[1.0, 2.0])
    with Workspace(tmp_path / "space") as space, pytest.raises(InputError, match=r"would merge 1 .* edge weights"):
        spool_edges(graph, "both", "keep", space, lambda done, total: None)
