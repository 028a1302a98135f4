"""Typed graphs from tables of types and relations; bad input names the type or the relation."""

import numpy as np
import pytest
import torch
from typed_graphs import same_hetero

from distgnn.datasets import GraphData
from distgnn.datasets.objects.recognise import as_graph_data
from distgnn.errors import GraphWarning, InputError
from distgnn.system.other_libraries import import_dgl

WRITES, CITES = ("author", "writes", "paper"), ("paper", "cites", "paper")


def test_dicts_of_columns_and_what_a_script_gives_beside_the_graph(small_tables):
    """OGB's own form, also as its `Data`, with labels and split beside it; columns that nothing takes are named."""
    pyg = pytest.importorskip("torch_geometric.data")
    parts = {
        "edge_index_dict": {WRITES: np.array([[0, 1], [0, 2]]), CITES: np.array([[0, 1], [1, 2]])},
        "node_feat_dict": {"paper": np.ones((3, 4), np.float32)},
        "num_nodes_dict": {"author": 2, "paper": 3},
        "node_year": {"paper": np.array([[2010], [2011], [2012]])},
    }
    papers = {"num_nodes": 3, "x": np.ones((3, 4)), "y": [0, 1, 1], "train_mask": [1, 0, 0]}
    expected, plain = (GraphData.from_types(small_tables(changed)) for changed in ({"paper": papers}, {}))
    beside = {"y": {"paper": np.array([[0], [1], [1]])}, "train": {"paper": np.array([0])}}
    with pytest.warns(GraphWarning, match=r"left out: paper.node_year \(\[3, 1\]\)"):
        found = as_graph_data(parts, **beside)
    hetero = plain.to_pyg()
    hetero.origin = "web"
    with pytest.warns(GraphWarning, match=r"left out: origin \(of no type\)"):
        GraphData.from_pyg(hetero)
    with pytest.warns(GraphWarning, match=r"left out: batch \(which of 2 graphs a vertex is in\)"):
        GraphData.from_dgl(import_dgl().batch([plain.to_dgl()] * 2))
    as_data = pyg.Data(x_dict={"paper": torch.ones(3, 4)})
    for name in ("edge_index_dict", "num_nodes_dict"):
        setattr(as_data, name, parts[name])
    for graph in (found, as_graph_data(as_data, **beside), as_graph_data(small_tables(), train={"paper": [0]})):
        same_hetero(graph.to_pyg(), expected.to_pyg()) if graph.types == expected.types else None
        assert dict(graph.typed["paper"].items()).keys() == {"feats", "labels", "train_mask"}
        assert graph.labels.tolist().count(-1) == 2 and graph.split_masks()["train"].sum() == 1


X, ENDS = np.ones((3, 4)), [[0, 1], [0, 2]]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({("poet", "likes", "paper"): [[0], [0]]}, "relation poet___likes___paper ends at 'poet', of which nothing is"),
        ({"author": {}}, "type author: nothing says how many vertices it has; relation author___writes___paper ends"),
        ({"author": {"num_nodes": -1}}, "type author, num_nodes must be a whole number, found -1"),
        ({WRITES: [[0, 2], [0, 2]]}, "relation author___writes___paper', edges: row 1 has source 2, beyond .*0 to 1"),
        ({WRITES: [[0, 1], [0, -1]]}, r"writes___paper', edges: row 1 has target -1, beyond type paper .ids .* 0 to 2"),
        ({WRITES: [[0, 1, 1]]}, r"relation author___writes___paper, edge_index has shape \[1, 3\]"),
        ({WRITES: {"edge_weight": [1.0]}}, "relation author___writes___paper, no edges: give one of edge_index"),
        ({WRITES: {"edge_index": ENDS, "edge_attr": [[1.0]]}}, r"writes___paper', edge_feats: .*\[2, D\]"),
        ({WRITES: {"edge_index": ENDS, "edge_weight": [1, np.nan]}}, "writes.*edge_weight: row 1 holds a value"),
        ({"paper": {"x": X, "train_mask": [True]}}, r"type paper, train: a mask must have shape \[3\]"),
        ({"paper": {"x": X, "train_idx": [5]}}, "type paper, train: vertex 5 is beyond the type"),
        ({"paper": {"x": X, "y": [0, 1]}}, r"type paper', labels: expected shape \[3\] or \[3, C\]"),
        ({"paper": {"x": [[1.0], [np.nan], [0]]}}, "type paper', feats: row 1 holds a value that is NaN"),
        ({("paper", "cites"): [[0], [0]]}, r"\('paper', 'cites'\) is no relation: give \(type of the sources"),
    ],
)
def test_bad_input_is_one_line_with_type_and_relation(changed, message, small_tables):
    with pytest.raises(InputError, match=message) as caught:
        GraphData.from_types(small_tables(changed))
    assert "\n" not in str(caught.value)
