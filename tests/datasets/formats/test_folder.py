"""The graph folder, also of a typed graph: all that was saved is read, mapped, and damage is named."""

import gzip
import json

import numpy as np
import pytest
import scipy.sparse
from typed_graphs import typed_tables

from distgnn.datasets import GraphData, load_graph
from distgnn.datasets.findings.findings import Findings
from distgnn.errors import GraphFormatError, GraphWarning, InputError
from distgnn.fitting.source import content_of_graph

FIELDS = {
    "edge_weight": np.linspace(0, 1, 6, dtype=np.float32),
    "edge_feats": np.arange(12, dtype=np.float32).reshape(6, 2),
    "edge_types": np.array([0, 1, 2, 0, 1, 2]),
    "node_types": np.array([0, 0, 0, 1, 1, 1]),
    "node_values": np.ones((6, 2)),
    "graph_ids": np.arange(6) // 2,
    "valid_edges": np.array([[0, 3]]),
    "test_edges": np.array([[0, 4]]),
    "valid_negatives": np.array([[0, 5], [5, 1]]),
    "valid_negative_targets": np.array([[5, 4, 2]]),
    "edge_type_names": ("cites", "writes", "likes"),
    "node_type_names": ("paper", "author"),
    "num_label_classes": 5,
}


def test_folder_holds_all_that_was_saved(small_graph, graph_folder):
    header = {"name": "small", "num_nodes": 6, "directed": True}
    assert json.loads((graph_folder / "graph.json").read_text()) == header
    for name, value in FIELDS.items():
        setattr(small_graph, name, value)
    small_graph.notes["license"] = "none"
    small_graph.save(graph_folder, overwrite=True)
    graph = load_graph(str(graph_folder))
    assert (graph.name, graph.num_nodes, graph.directed, graph.num_classes) == ("small", 6, True, 5)
    assert (graph.notes["license"], graph.num_edge_feats, graph.num_edge_types) == ("none", 2, 3)
    assert (graph.num_node_types, graph.num_values, graph.num_graphs, graph.held_out) == (2, 2, 3, True)
    for field in ("edges", "feats", "labels", "train", "valid", "test", *FIELDS):
        assert np.array_equal(getattr(graph, field), getattr(small_graph, field)), field
    assert isinstance(graph.edges, np.memmap) and isinstance(graph.feats, np.memmap)
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


@pytest.mark.parametrize("seed", range(4))
def test_a_folder_holds_all_of_a_typed_graph(seed, tmp_path):
    """Also names of vertices, of classes, and types that no folder can have as its name."""
    tables = typed_tables(seed)
    tables["../a.b/c"] = {"y": ["yes", "no"], "node_names": np.array(["ä", "b"])}
    tables["../a.b/c", "..", "paper"] = np.array([[0, 1], [2, 3]])
    graph = GraphData.from_types(tables, findings=Findings())
    folder = graph.save(tmp_path / "graph")
    back = load_graph(str(folder), findings=Findings())
    assert content_of_graph(back) == content_of_graph(graph) and back.findings.lines() == []
    assert isinstance(back.typed["author"]["feats"], np.memmap)
    assert {path.parent for path in tmp_path.rglob("*.np*")} == {path for path in folder.iterdir() if path.is_dir()}
    graph.save(folder, overwrite=True)
    (folder / "paper" / "mine.txt").write_text("x")
    with pytest.raises(InputError, match=r"mine\.txt"):
        graph.save(folder, overwrite=True)
    with pytest.warns(GraphWarning, match="left out: paper/mine.txt"):
        load_graph(str(folder))


WRITES = "author___writes___paper"


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("paper/feats.npy", np.ones((2, 4)), r"paper/feats.npy: expected shape \[3, D\]"),
        (f"{WRITES}/edges.npy", np.array([[0, 7]]), f"{WRITES}/edges.npy: row 0 has target 7, beyond"),
        (f"{WRITES}/edge_weight.npy", np.ones(9, "f4"), f"{WRITES}/edge_weight.npy: expected shape .2."),
        ("paper/train.npy", np.array([0, 0]), "type paper, train: 1 vertices are there twice"),
        ("graph.json", {"types": {"paper": "3"}}, "json: 'types' must be names of types with numbers of vertices"),
        ("graph.json", {"relations": [["a", "b"]]}, r"graph.json: 'relations' must be a list of \[source type"),
        ("graph.json", {"type_classes": {"paper": [1]}}, "graph.json: 'type_classes' must be numbers of classes"),
        ("graph.json", {"types": {"paper": 3}}, f"relation {WRITES} ends at 'author', of which nothing"),
    ],
)
def test_what_is_wrong_in_a_typed_folder_is_one_line_with_its_file(file, content, message, small_tables, tmp_path):
    folder = GraphData.from_types(small_tables()).save(tmp_path / "graph")
    if isinstance(content, dict):
        header = json.loads((folder / file).read_text())
        (folder / file).write_text(json.dumps(header | content))
    else:
        np.save(folder / file, content)
    with pytest.raises(GraphFormatError, match=message) as caught:
        load_graph(str(folder))
    assert str(folder) in str(caught.value) and "\n" not in str(caught.value)
