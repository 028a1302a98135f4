"""Typed graphs: every type with its own columns, every relation with its own edges, there and back."""

import json

import numpy as np
import pytest
import scipy.sparse
import torch
from typed_graphs import same_hetero, typed_graph, typed_tables

from distgnn.datasets import GraphData, load_graph
from distgnn.datasets.findings.findings import Findings
from distgnn.datasets.objects.recognise import as_graph_data
from distgnn.errors import GraphFormatError, GraphWarning, InputError
from distgnn.fitting.source import content_of_graph
from distgnn.system.other_libraries import import_dgl

pytest.importorskip("torch_geometric")
WRITES, CITES = ("author", "writes", "paper"), ("paper", "cites", "paper")


def small(**changed):
    """3 papers, 2 authors."""
    tables = {"paper": {"x": np.ones((3, 4), np.float32), "y": [0, 1, 1]}, "author": 2}
    return tables | {WRITES: [[0, 1], [0, 2]], CITES: {"edge_index": [[0, 1], [1, 2]]}} | changed


@pytest.mark.parametrize("seed", range(8))
def test_there_and_back_through_pyg_dgl_and_a_random_split(seed):
    """Every column comes back bit by bit, and types and relations in their order; DGL orders both by name."""
    dgl, graph = import_dgl(), typed_graph(seed)
    data = graph.to_pyg()
    assert data.validate() and tuple(data.metadata()[0]) == graph.types and tuple(data.edge_types) == graph.relations
    again = GraphData.from_pyg(data, findings=Findings())
    same_hetero(again.to_pyg(), data)
    assert content_of_graph(again.from_pyg(data, name="typed", findings=again.findings)) == content_of_graph(
        GraphData.from_types(
            typed_tables(seed, sparse=False) | {"field": {"x": data["field"].x}}, name="typed", findings=again.findings
        )
    )
    theirs = graph.to_dgl()
    back = GraphData.from_dgl(theirs, findings=again.findings)
    assert set(back.types) == set(graph.types) and set(back.relations) == set(graph.relations)
    for kind in graph.types:
        columns = back.typed.get(kind, {})
        assert columns.keys() == graph.typed.get(kind, {}).keys()
        for name, column in columns.items():
            expected = graph.typed[kind][name]
            expected = expected.toarray() if scipy.sparse.issparse(expected) else expected
            np.testing.assert_array_equal(column, expected, err_msg=f"{kind}.{name}")
    for relation in graph.relations:
        assert torch.equal(torch.stack(theirs.edges(etype=relation, order="eid")), data[relation].edge_index)
        for name, column in graph.relation_columns.get(relation, {}).items():
            np.testing.assert_array_equal(back.relation_columns[relation][name], column)
    assert dgl.to_homogeneous(theirs).num_edges() == graph.num_edges
    resplit = GraphData.from_types(small(), findings=again.findings).split_nodes(0.5, 0.25, 0.25)
    masks = [resplit.typed["paper"][f"{name}_mask"] for name in ("train", "valid", "test")]
    assert np.sum(masks, axis=0).max() == 1 and np.array_equal(np.flatnonzero(masks[0]), resplit.train)


def test_reverse_relations_are_those_of_to_undirected():
    """PyG's own come as they are; `both` and `reversed` make them, with the columns of their edges."""
    transforms = pytest.importorskip("torch_geometric.transforms")
    graph = typed_graph(1)
    plain = graph.to_pyg()
    del plain["paper", "cites", "paper"], plain["field", "of", "paper"]  # PyG merges these, or drops their columns
    graph = GraphData.from_pyg(plain, findings=graph.findings)
    theirs = transforms.ToUndirected(merge=False)(graph.to_pyg())
    same_hetero(graph.to_pyg(graph.edge_list("both")), theirs)
    same_hetero(GraphData.from_pyg(theirs, findings=graph.findings).to_pyg(), theirs)
    assert graph.to_pyg(graph.edge_list("reversed")).edge_types == theirs.edge_types[len(graph.relations) :]
    with pytest.raises(InputError, match="relation paper___rev_writes___author is there already, and direction 'both'"):
        both = GraphData.from_pyg(theirs, findings=graph.findings)
        both.to_pyg(both.edge_list("both"))


def test_dicts_of_columns_and_what_a_script_gives_beside_the_graph():
    """OGB's own form, also as its `Data`, with labels and split beside it; columns that nothing takes are named."""
    pyg = pytest.importorskip("torch_geometric.data")
    parts = {
        "edge_index_dict": {WRITES: np.array([[0, 1], [0, 2]]), CITES: np.array([[0, 1], [1, 2]])},
        "node_feat_dict": {"paper": np.ones((3, 4), np.float32)},
        "num_nodes_dict": {"author": 2, "paper": 3},
        "node_year": {"paper": np.array([[2010], [2011], [2012]])},
    }
    expected = GraphData.from_types(
        small(paper={"num_nodes": 3, "x": np.ones((3, 4)), "y": [0, 1, 1], "train_mask": [1, 0, 0]})
    )
    beside = {"y": {"paper": np.array([[0], [1], [1]])}, "train": {"paper": np.array([0])}}
    with pytest.warns(GraphWarning, match=r"left out: paper.node_year \(\[3, 1\]\)"):
        found = as_graph_data(parts, **beside)
    hetero = GraphData.from_types(small()).to_pyg()
    hetero.origin = "web"
    with pytest.warns(GraphWarning, match=r"left out: origin \(of no type\)"):
        GraphData.from_pyg(hetero)
    with pytest.warns(GraphWarning, match=r"left out: batch \(which of 2 graphs a vertex is in\)"):
        GraphData.from_dgl(import_dgl().batch([GraphData.from_types(small()).to_dgl()] * 2))
    as_data = pyg.Data()
    for name in ("edge_index_dict", "num_nodes_dict"):
        setattr(as_data, name, parts[name])
    as_data.x_dict = {"paper": torch.ones(3, 4)}
    for graph in (found, as_graph_data(as_data, **beside), as_graph_data(small(), train={"paper": [0]})):
        same_hetero(graph.to_pyg(), expected.to_pyg()) if graph.types == expected.types else None
        assert dict(graph.typed["paper"].items()).keys() == {"feats", "labels", "train_mask"}
        assert graph.labels.tolist().count(-1) == 2 and graph.split_masks()["train"].sum() == 1
    scaled = expected.normalize_feats()
    assert (scaled.typed["paper"]["feats"] == 0.25).all() and (expected.typed["paper"]["feats"] == 1).all()


def test_labels_of_several_types_are_no_column_of_all():
    graph = GraphData.from_types(small(author={"y": ["b", "a"], "train_mask": [True, False]}), findings=Findings())
    assert graph.labels is None and graph.type_classes == {"author": ("a", "b")}
    assert graph.typed["author"]["labels"].tolist() == [1, 0] and graph.train.tolist() == [3]
    values = GraphData.from_types(small(author={"y": [0.5, float("nan")]}))
    np.testing.assert_array_equal(values.node_values, np.float32([np.nan] * 3 + [0.5, np.nan]))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({("poet", "likes", "paper"): [[0], [0]]}, "relation poet___likes___paper ends at 'poet', of which nothing is"),
        ({"author": {}}, "type author: nothing says how many vertices it has; relation author___writes___paper ends"),
        ({"author": {"num_nodes": -1}}, "type author, num_nodes must be a whole number, found -1"),
        (
            {WRITES: [[0, 2], [0, 2]]},
            r"relation author___writes___paper', edges: row 1 has source 2, beyond type author .*0 to 1",
        ),
        (
            {WRITES: [[0, 1], [0, -1]]},
            r"author___writes___paper', edges: row 1 has target -1, beyond type paper \(ids .* 0 to 2",
        ),
        ({WRITES: [[0, 1, 1]]}, r"relation author___writes___paper, edge_index has shape \[1, 3\]"),
        ({WRITES: {"edge_weight": [1.0]}}, "relation author___writes___paper, no edges: give one of edge_index"),
        ({WRITES: {"edge_index": [[0, 1], [0, 2]], "edge_attr": [[1.0]]}}, r"writes___paper', edge_feats: .*\[2, D\]"),
        (
            {WRITES: {"edge_index": [[0, 1], [0, 2]], "edge_weight": [1, np.nan]}},
            "writes.*edge_weight: row 1 holds a value",
        ),
        ({"paper": {"x": np.ones((3, 4)), "train_mask": [True]}}, r"type paper, train: a mask must have shape \[3\]"),
        ({"paper": {"x": np.ones((3, 4)), "train_idx": [5]}}, "type paper, train: vertex 5 is beyond the type"),
        ({"paper": {"x": np.ones((3, 4)), "y": [0, 1]}}, r"type paper', labels: expected shape \[3\] or \[3, C\]"),
        ({"paper": {"x": [[1.0], [np.nan], [0]]}}, "type paper', feats: row 1 holds a value that is NaN"),
        ({("paper", "cites"): [[0], [0]]}, r"\('paper', 'cites'\) is no relation: give \(type of the sources"),
    ],
)
def test_bad_input_is_one_line_with_type_and_relation(changed, message):
    with pytest.raises(InputError, match=message) as caught:
        GraphData.from_types(small(**{key: value for key, value in changed.items() if isinstance(key, str)}) | changed)
    assert "\n" not in str(caught.value)


def test_fields_that_do_not_fit_types_are_refused():
    data = GraphData.from_types(small())
    for call, message in (
        (lambda: GraphData.from_pyg(data.to_pyg(), directed=False), "leave directed=False out"),
        (lambda: GraphData.from_types(small(), y=[0, 1]), "labels: give a dict of columns by type, as {'paper'"),
        (lambda: GraphData.from_types(small(), y={"poet": [0]}), "labels of 'poet', which this graph does not have"),
        (lambda: data.split_links(), "has relations: hold edges of one out yourself"),
        (lambda: data.edge_list("stored", "add"), "a self-loop has no relation"),
    ):
        with pytest.raises(InputError, match=message):
            call()


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


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("paper/feats.npy", np.ones((2, 4)), r"paper/feats.npy: expected shape \[3, D\]"),
        (
            "author___writes___paper/edges.npy",
            np.array([[0, 7]]),
            "author___writes___paper/edges.npy: row 0 has target 7, beyond",
        ),
        (
            "author___writes___paper/edge_weight.npy",
            np.ones(9, "f4"),
            "writes___paper/edge_weight.npy: expected shape .2.",
        ),
        ("paper/train.npy", np.array([0, 0]), "type paper, train: 1 vertices are there twice"),
        (
            "graph.json",
            {"types": {"paper": "3"}},
            "graph.json: 'types' must be names of types with numbers of vertices",
        ),
        (
            "graph.json",
            {"relations": [["author", "writes"]]},
            r"graph.json: 'relations' must be a list of \[source type",
        ),
        ("graph.json", {"type_classes": {"paper": [1]}}, "graph.json: 'type_classes' must be numbers of classes"),
        ("graph.json", {"types": {"paper": 3}}, "relation author___writes___paper ends at 'author', of which nothing"),
    ],
)
def test_what_is_wrong_in_a_typed_folder_is_one_line_with_its_file(file, content, message, tmp_path):
    folder = GraphData.from_types(small()).save(tmp_path / "graph")
    if isinstance(content, dict):
        header = json.loads((folder / file).read_text())
        (folder / file).write_text(json.dumps(header | content))
    else:
        np.save(folder / file, content)
    with pytest.raises(GraphFormatError, match=message) as caught:
        load_graph(str(folder))
    assert str(folder) in str(caught.value) and "\n" not in str(caught.value)
