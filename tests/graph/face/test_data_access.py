"""The face of a graph answers as PyG's Data of the whole graph does, on any number of ranks, or refuses in one line."""

import copy

import numpy as np
import pytest
import torch
from cut_graphs import DIRECTED, UNDIRECTED, dist_graph, random_graph

from distgnn.datasets import GraphData
from distgnn.errors import InputError
from distgnn.graph.face.row_graph import with_rows
from distgnn.interop.pyg.api import register

Data = pytest.importorskip("torch_geometric.data").Data
transforms = pytest.importorskip("torch_geometric.transforms")
pytest.importorskip("torch_geometric.nn")


def both(comm, directed: bool = UNDIRECTED, **sizes):
    """(a graph on ranks, PyG's Data of the whole)."""
    source = random_graph(3, directed=directed, **sizes)
    graph, data = dist_graph(source, comm), source.to_pyg()
    register(graph)
    data.x = data.x.double()
    del data["num_nodes"]  # as x has them
    return with_rows(graph), data


def whole(value):
    return value.whole() if hasattr(value, "whole") else value


@pytest.mark.mpi(3)
def test_sizes_and_columns_by_name(comm):
    ours, theirs = both(comm)
    for name in ("num_nodes", "num_features", "num_node_features", "num_edge_features", "num_edges"):
        assert getattr(ours, name) == getattr(theirs, name), name
    assert ours.size() == theirs.size() and ours.num_nodes() == ours.num_nodes
    assert sorted(ours.keys()) == sorted(theirs.keys())
    assert [name for name in ("x", "pos", "y") if name in ours] == ["x", "y"]
    assert len(ours) == len(theirs) and ours["x"] is ours.get("x") is ours.x and ours.get("pos") is None
    masks = dict(ours("train_mask", "val_mask"))
    assert {name: whole(mask).tolist() for name, mask in masks.items()} == {
        name: mask.tolist() for name, mask in theirs("train_mask", "val_mask")
    }
    assert set(ours.node_attrs()) == set(theirs.node_attrs()) and ours.edge_attrs() == theirs.edge_attrs()
    with pytest.raises(KeyError, match="no column 'pos'"):
        _ = ours["pos"]
    with pytest.raises(AttributeError, match="trian_mask"):
        _ = ours.trian_mask


@pytest.mark.mpi(3)
def test_columns_that_are_set(comm):
    ours, theirs = both(comm, directed=DIRECTED)
    scores = torch.arange(ours.num_edges, dtype=torch.float64)
    for data in (ours, theirs):
        data.x = data.x * 2
        data["train_mask"] = ~data.train_mask
        data.order = torch.arange(60)
        data.score = scores
        data.edge_attr = scores[:, None]
        data.note = "text"
        data.ids = torch.tensor([1, 2])
    assert torch.equal(whole(ours.x), theirs.x) and torch.equal(whole(ours.train_mask), theirs.train_mask)
    assert torch.equal(whole(ours.ndata["feat"]), theirs.x)
    assert torch.equal(whole(ours.order), theirs.order) and torch.equal(whole(ours.score), scores)
    assert ours.num_edge_features == theirs.num_edge_features == 1
    assert ours.note == "text" and torch.equal(ours.ids, theirs.ids)
    assert sorted(ours.keys()) == sorted(theirs.keys())
    del ours.order, ours["note"]
    ours.edge_attr = None
    assert not {"order", "note", "edge_attr"} & set(ours.keys()) and not hasattr(ours, "order")


@pytest.mark.mpi(3)
def test_sizes_and_arcs_stay(comm):
    ours, _ = both(comm)
    ours.num_nodes = 60
    with pytest.raises(InputError, match="it cannot be 61"):
        ours.num_nodes = 61
    with pytest.raises(InputError, match="keep another edge_index in a variable"):
        ours.edge_index = ours.edge_index
    with pytest.raises(InputError, match="the graph's own: give the column another name"):
        ours.rank = torch.zeros(60)
    with pytest.raises(InputError, match="59 rows: the graph has 60"):
        ours.x = torch.zeros(59, 3)
    with pytest.raises(InputError, match="lives on the CPU"):
        ours.to("cuda")
    assert ours.to("cpu") is ours.cpu() is ours.contiguous() is ours and ours.validate()


@pytest.mark.mpi(3)
@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda data: data.clone()], ids=["copy", "deep", "clone"])
def test_copies_have_columns_of_their_own(comm, copied):
    ours, theirs = both(comm)
    other = copied(ours)
    other.x = other.x + 1
    other.extra = torch.ones(60)
    assert torch.equal(whole(ours.x), theirs.x) and torch.equal(whole(other.x), theirs.x + 1)
    assert "extra" not in ours and other.plain is not ours.plain
    if copied is not copy.copy:
        other.y[:] = 0
        assert torch.equal(whole(ours.y), theirs.y)


@pytest.mark.mpi(3)
@pytest.mark.parametrize("directed", [DIRECTED, UNDIRECTED], ids=["directed", "undirected"])
@pytest.mark.parametrize("edges", [300, 0, 1])
def test_questions_about_arcs(comm, directed, edges):
    ours, theirs = both(comm, directed, num_edges=max(edges, 100))
    if edges == 0:  # no loops, no duplicates
        ends = np.array([[0, 1], [1, 2], [3, 4]])
        source = GraphData.from_arrays(ends, num_nodes=5, directed=directed)
        ours, theirs = with_rows(dist_graph(source, comm)), source.to_pyg()
    for name in ("is_undirected", "is_directed", "has_self_loops", "has_isolated_nodes"):
        assert getattr(ours, name)() == getattr(theirs, name)(), name
    assert ours.is_coalesced() == theirs.is_coalesced() and ours.sort().is_coalesced() == (edges == 0)


@pytest.mark.mpi(3)
def test_arcs_with_other_features_back_are_directed(comm):
    ends = np.array([[0, 1], [1, 0], [2, 3], [3, 2]])
    for last, undirected in ((2, True), (3, False)):
        feats = np.array([[1], [1], [2], [last]], np.float32)
        graph = dist_graph(GraphData.from_arrays(ends, num_nodes=4, directed=True, edge_feats=feats), comm)
        assert with_rows(graph).is_undirected() == undirected


@pytest.mark.mpi(3)
@pytest.mark.parametrize(
    "transform",
    [
        transforms.NormalizeFeatures(),
        transforms.Constant(),
        transforms.Compose([transforms.RandomNodeSplit(num_val=5, num_test=6), transforms.MaskToIndex()]),
        transforms.RandomNodeSplit(num_splits=2, num_val=5, num_test=6),
        transforms.RandomNodeSplit("random", num_train_per_class=3, num_val=5, num_test=6),
        transforms.RemoveTrainingClasses([0, 2]),
    ],
    ids=lambda transform: type(transform).__name__,
)
def test_transforms_of_columns(comm, transform):
    found = []
    for data in both(comm):
        torch.manual_seed(7)
        found.append(transform(data))
    ours, theirs = found
    assert sorted(ours.keys()) == sorted(theirs.keys())
    for name, value in theirs:
        if name != "edge_index":
            torch.testing.assert_close(whole(ours[name]), value, rtol=1e-12, atol=1e-12)
