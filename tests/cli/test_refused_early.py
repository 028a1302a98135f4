"""Settings that no rank could run are refused by the launcher, before any rank starts."""

import numpy as np
import pytest

from distgnn.cli import ranks
from distgnn.datasets import GraphData
from distgnn.datasets.findings.findings import Findings
from distgnn.partition import partition_graph

CLASSES, PAIRS = np.arange(30) % 3, np.arange(18).reshape(9, 2)
SEVERAL = 1 - np.eye(3)[CLASSES]  # two labels a vertex


def test_too_little_memory_is_refused_before_ranks_start(refused, two_parts, tmp_path, monkeypatch):
    monkeypatch.setattr(ranks, "run_under_mpi", lambda *_, **__: pytest.fail("ranks were started"))
    refused("train", two_parts, "--memory", "1MB", says="raise --memory")


@pytest.mark.parametrize("end", ["csv", "parquet"])
def test_a_name_says_the_format(refused, parts, tmp_path, end):
    refused("report", parts, "--out", tmp_path / f"t.{end}", says=f", and the name says .{end}: end it in .")


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
    from distgnn.cli import ranks

    monkeypatch.delattr(ranks, "run_on_ranks")  # nothing is started
    feats = np.ones((30, 2), np.float32)
    graph = GraphData.from_arrays(PAIRS, 30, False, **({"feats": feats} | fields))
    partition_graph(graph, 1, tmp_path / "parts", say=lambda line: None)  # some is said of it at the cut
    refused("train", tmp_path / "parts", "--run-dir", tmp_path / "run", *words, says=says)


@pytest.mark.parametrize("model", ["gcn2", "appnp"])
@pytest.mark.parametrize("weight", [0.0, -1.0, 1e-46])
def test_weights_that_a_model_divides_by(refused, tmp_path, model, weight):
    weights = np.ones(60)
    weights[5] = weight
    edges = np.random.default_rng(0).integers(0, 20, (60, 2))
    fields = {"feats": np.ones((20, 2)), "labels": np.arange(20) % 3, "edge_weight": weights}
    graph = GraphData.from_arrays(edges, 20, findings=Findings(), **fields)
    place = tmp_path / "parts"
    manifest = partition_graph(graph, 2, place, "libra", direction="stored", split="0.6,0.2,0.2", say=lambda line: None)
    assert manifest["graph"]["nonpositive_weights"] == 1
    says = f"--weighted of {model} divides by the root of sums of edge weights: 1 weights"
    refused("train", place, "--model", model, "--weighted", "--run-dir", tmp_path / "run", says=says)
