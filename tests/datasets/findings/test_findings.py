"""Nothing of a graph is left out in silence: all of it is in one warning, and in the lines."""

import pytest
import torch

from distgnn.datasets import GraphData
from distgnn.datasets.findings.findings import Findings
from distgnn.errors import GraphWarning

pyg = pytest.importorskip("torch_geometric.data")
FEATS, LABELS = torch.arange(10.0).reshape(5, 2), torch.tensor([0, 1, 1, 0, 2])


def test_what_is_left_out_is_named_once_in_one_warning():
    columns = {"edge_index": torch.tensor([[0, 1, 2, 2, 3], [1, 2, 0, 3, 4]]), "edge_time": torch.ones(5)}
    data = pyg.Data(x=FEATS, features=FEATS, pos=FEATS, label=LABELS, note="by hand", **columns)
    with pytest.warns(GraphWarning) as said:
        graph = GraphData.from_pyg(data)
    assert len(said) == 1 and graph.labels.tolist() == LABELS.tolist()
    head, _, text = str(said[0].message).partition(": ")
    assert head == "graph 'pyg'" and text.startswith("labels ← label; left out: ")
    assert all(text.count(name) == 1 for name in ("features ([5, 2])", "pos ([5, 2])", "note (str)", "edge_time ([5])"))
    assert GraphData.from_pyg(data, findings=Findings()).findings.lines() == text.split("; ")
