"""What a task needs of a graph: refused before ranks start."""

import numpy as np
import pytest

from distgnn.cli import places
from distgnn.datasets import GraphData
from distgnn.partition import partition_graph

CLASSES, PAIRS = np.arange(30) % 3, np.arange(18).reshape(9, 2)
SEVERAL = 1 - np.eye(3)[CLASSES]  # two labels a vertex


@pytest.mark.parametrize(
    ("fields", "words", "says"),
    [
        ({}, [], "the graph has no labels"),
        ({"labels": CLASSES}, [], "no training vertex has a label"),
        ({"labels": CLASSES, "train": range(9), "feats": None}, [], "the graph has no features"),
        ({"labels": CLASSES, "train": range(9)}, ["--metric", "rocauc"], "metric rocauc needs two classes or several"),
        ({"labels": SEVERAL, "train": range(9)}, ["--set", "label_smoothing=0.1"], "this graph is multi-label"),
        ({"node_values": CLASSES[:, None] / 3}, ["--task", "regression"], "there are no training vertices"),
        (
            {"train_edges": PAIRS, "train_edge_labels": np.arange(9) % 3, "held_out": False},
            ["--task", "edge", "--metric", "rocauc"],
            "the edges of this graph have 3",
        ),
    ],
)
def test_what_a_graph_has_not_is_refused_before_ranks_start(refused, tmp_path, monkeypatch, fields, words, says):
    monkeypatch.delattr(places, "run_on_ranks")  # nothing is started
    feats = np.ones((30, 2), np.float32)
    graph = GraphData.from_arrays(PAIRS, 30, False, **({"feats": feats} | fields))
    partition_graph(graph, 1, tmp_path / "parts", say=lambda line: None)  # some is said of it at the cut
    refused("train", tmp_path / "parts", "--run-dir", tmp_path / "run", *words, says=says)
