"""Columns by their usual names and synonyms: each is taken or named."""

import warnings

import numpy as np
import pytest
import torch

from distgnn.datasets import as_graph_data
from distgnn.datasets.names.field_names import DGL_NAMES, OF_NODES, PYG_NAMES
from distgnn.errors import GraphNotice
from distgnn.system.other_libraries import import_dgl

ENDS = torch.tensor([[0, 1, 2, 2, 3], [1, 2, 0, 3, 4]])
FEATS, LABELS = torch.arange(10.0).reshape(5, 2), torch.tensor([0, 1, 1, 0, 2])
MASK = torch.tensor([True, False, False, True, False])


def pyg_data(**columns):
    return pytest.importorskip("torch_geometric.data").Data(edge_index=ENDS, num_nodes=5, **columns)


def dgl_graph(**columns):
    graph = import_dgl().graph(tuple(ENDS), num_nodes=5)
    graph.ndata.update(columns)
    return graph


@pytest.mark.parametrize("name", [*OF_NODES["feats"], *OF_NODES["labels"], *OF_NODES["train"]])
@pytest.mark.parametrize("make", [pyg_data, dgl_graph])
def test_every_synonym_is_taken_and_said_where_it_is_not_the_usual_name(make, name):
    field = next(field for field, names in OF_NODES.items() if name in names)
    column = {"feats": FEATS, "labels": LABELS, "train": MASK}[field]
    unusual = (PYG_NAMES if make is pyg_data else DGL_NAMES)[field] != name
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        graph = as_graph_data(make(**{name: column}))
    expected = np.flatnonzero(MASK) if field == "train" else column
    np.testing.assert_array_equal(getattr(graph, field), expected)
    found = [(one.category, f"{field} ← {name}" in str(one.message), one.filename) for one in said]
    assert found == [(GraphNotice, True, __file__)] * unusual
