import gzip
import json

import numpy as np
import pytest
import scipy.sparse

from distgnn.datasets import GraphData, load_graph
from distgnn.errors import InputError


def test_folder_holds_all_that_was_saved(small_graph, graph_folder):
    header = {"name": "small", "num_nodes": 6, "directed": True}
    assert json.loads((graph_folder / "graph.json").read_text()) == header
    small_graph.edge_weight = np.linspace(0, 1, 6, dtype=np.float32)
    small_graph.edge_feats = np.arange(12, dtype=np.float32).reshape(6, 2)
    small_graph.edge_types, small_graph.node_types = np.array([0, 1, 2, 0, 1, 2]), np.array([0, 0, 0, 1, 1, 1])
    small_graph.edge_type_names, small_graph.node_type_names = ("cites", "writes", "likes"), ("paper", "author")
    small_graph.num_label_classes = 5
    small_graph.notes["license"] = "none"
    small_graph.save(graph_folder, overwrite=True)
    graph = load_graph(str(graph_folder))
    assert (graph.name, graph.num_nodes, graph.directed, graph.num_classes) == ("small", 6, True, 5)
    assert (graph.notes["license"], graph.num_edge_feats) == ("none", 2)
    assert (graph.edge_type_names, graph.num_edge_types) == (("cites", "writes", "likes"), 3)
    assert (graph.node_type_names, graph.num_node_types) == (("paper", "author"), 2)
    fields = ("edges", "feats", "labels", "edge_weight", "edge_feats", "edge_types", "node_types")
    for field in (*fields, "train", "valid", "test"):
        assert np.array_equal(getattr(graph, field), getattr(small_graph, field)), field


def test_arrays_are_mapped_and_not_writable(graph_folder):
    graph = load_graph(str(graph_folder))
    assert isinstance(graph.edges, np.memmap)
    assert isinstance(graph.feats, np.memmap)
    with pytest.raises(ValueError, match="read-only"):
        graph.feats[0, 0] = 1


def test_sparse_feats_stay_sparse(small_graph, tmp_path):
    small_graph.feats = scipy.sparse.csr_matrix(np.eye(6, dtype=np.float32))
    graph = load_graph(str(small_graph.save(tmp_path / "sparse")))
    assert scipy.sparse.issparse(graph.feats)
    assert np.array_equal(graph.feats.toarray(), np.eye(6))


def test_a_graph_without_edges(tmp_path):
    graph = GraphData.from_arrays(np.zeros((0, 2)), num_nodes=3)
    again = load_graph(str(graph.save(tmp_path / "none")))
    assert again.edges.shape == (0, 2)
    assert again.edge_list("both", "add").num_arcs == 3


@pytest.mark.parametrize("name", ["edges.csv", "edges.txt", "edges.csv.gz", "edges.txt.gz"])
def test_edges_as_text(graph_folder, small_graph, name):
    separator = "," if "csv" in name else "\t"
    text = "# source target\n" + "".join(f"{u}{separator}{v}\n" for u, v in small_graph.edges)
    (graph_folder / "edges.npy").unlink()
    (graph_folder / name).write_bytes(gzip.compress(text.encode()) if name.endswith("gz") else text.encode())
    assert np.array_equal(load_graph(str(graph_folder)).edges, small_graph.edges)


def test_a_folder_of_something_else_is_never_overwritten(small_graph, tmp_path):
    (tmp_path / "mine.txt").write_text("x")
    with pytest.raises(InputError, match=r"graph\.json: no such file\): it is left alone"):
        small_graph.save(tmp_path, overwrite=True)
    assert (tmp_path / "mine.txt").is_file()


def test_a_graph_folder_with_something_else_in_it_is_never_overwritten(small_graph, graph_folder):
    (graph_folder / "mine.txt").write_text("x")
    with pytest.raises(InputError, match="not one of ours"):
        small_graph.save(graph_folder, overwrite=True)
    assert (graph_folder / "mine.txt").is_file()


def test_a_graph_can_be_saved_over_the_folder_it_is_mapped_from(graph_folder):
    graph = load_graph(str(graph_folder))
    graph.save(graph_folder, overwrite=True)
    assert np.array_equal(load_graph(str(graph_folder)).edges, graph.edges)
