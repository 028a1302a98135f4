"""ogbn-mag's layout: types of vertices and relations."""

import numpy as np
import pytest
from valid_graphs import write_mag, write_tables

from distgnn.datasets import load_graph
from distgnn.errors import GraphFormatError, InputError

SIZES = {"author": 3, "field_of_study": 2, "institution": 1, "paper": 4}
FIRST = {"author": 0, "field_of_study": 3, "institution": 5, "paper": 6}
EDGES = {
    ("author", "affiliated_with", "institution"): [[0, 0], [2, 0]],
    ("author", "writes", "paper"): [[0, 1], [1, 1], [2, 3]],
    ("paper", "cites", "paper"): [[0, 1], [1, 0], [3, 2]],
    ("paper", "has_topic", "field_of_study"): [[0, 1], [2, 0]],
}
FEATS = np.arange(8).reshape(4, 2) / 4


@pytest.fixture
def mag(tmp_path):
    """A small folder of ogbn-mag's layout, with its types not in order."""
    sizes = {name: SIZES[name] for name in ("paper", "author", "institution", "field_of_study")}
    splits = {"train": [0, 3], "valid": [1], "test": [2]}
    return write_mag(tmp_path / "ogbn_mag", sizes, EDGES, FEATS, [5, 348, 0, 7], splits)


def test_types_and_relations_are_in_the_order_of_their_names(mag):
    graph = load_graph("ogbn-mag", mag.parent)
    assert (graph.num_nodes, graph.directed, graph.num_classes) == (10, True, 349)
    assert dict(zip(graph.types, graph.type_counts, strict=True)) == SIZES and graph.relations == tuple(EDGES)
    expected = [[FIRST[h] + u, FIRST[t] + v] for (h, _, t), edges in EDGES.items() for u, v in edges]
    assert graph.edges.tolist() == expected
    assert graph.edge_types.tolist() == [0] * 2 + [1] * 3 + [2] * 3 + [3] * 2
    paper = {name: column.tolist() for name, column in graph.typed["paper"].items() if name != "feats"}
    masks = {"train_mask": [1, 0, 0, 1], "valid_mask": [0, 1, 0, 0], "test_mask": [0, 0, 1, 0]}
    assert paper == {"labels": [5, 348, 0, 7], **masks}
    np.testing.assert_array_equal(graph.typed["paper"]["feats"], FEATS)
    assert graph.typed.keys() == {"paper"}
    assert graph.labels.tolist() == [-1] * 6 + [5, 348, 0, 7]
    assert [graph.train.tolist(), graph.valid.tolist(), graph.test.tolist()] == [[6, 9], [7], [8]]


def test_both_directions_keep_reciprocal_edges_and_add_reverse_relations(mag):
    graph = load_graph(str(mag))
    assert graph.edge_list("both").num_arcs == 20
    whole = graph.to_dgl(graph.edge_list("both"))
    assert [column.tolist() for column in whole.edges(etype="rev_cites")] == [[1, 0, 2], [0, 1, 3]]
    assert [column.tolist() for column in whole.edges(etype="rev_writes")] == [[1, 1, 3], [0, 1, 2]]


@pytest.mark.parametrize(
    ("name", "rows", "message"),
    [
        ("raw/num-node-dict.csv.gz", [["paper", "author"], [4, "x"]], "names of vertex types and one line of counts"),
        ("raw/triplet-type-list.csv.gz", [["author", "writes"]], "expected 3 words on every line"),
        ("raw/triplet-type-list.csv.gz", [["poet", "writes", "paper"]], "'poet' is no vertex type"),
        (
            "raw/relations/author___writes___paper/edge.csv.gz",
            [[0, 1], [3, 1], [2, 3]],
            "row 1 has source 3, beyond type author",
        ),
        ("raw/relations/author___writes___paper/num-edge-list.csv.gz", [[3], [4]], "expected one number, found 2"),
        ("raw/node-label/paper/node-label.csv.gz", [["5"], ["inf"], ["0"], ["7"]], "gz: labels: row 1 is infinite"),
        ("raw/node-feat/author/node-feat.csv.gz", [[1], [2]], "row"),
        ("split/time/nodetype-has-split.csv.gz", [["paper"]], "one line of True and False"),
    ],
)
def test_what_is_wrong_is_named(mag, name, rows, message):
    write_tables(mag, {name.removesuffix(".csv.gz"): rows})
    with pytest.raises(GraphFormatError, match=message) as caught:
        load_graph(str(mag))
    assert name.rsplit("/", 1)[1] in str(caught.value)


def test_what_is_missing_or_cut_off_is_named(mag):
    path = mag / "raw" / "num-node-dict.csv.gz"
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(GraphFormatError, match="num-node-dict"):
        load_graph(str(mag))
    path.unlink()
    with pytest.raises(InputError, match=r"num-node-dict.csv.gz: no such file"):
        load_graph(str(mag))
