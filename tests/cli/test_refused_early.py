"""Settings that no rank could run are refused by the launcher, before any rank starts."""

import numpy as np
import pytest

from distgnn.datasets import GraphData
from distgnn.partition import partition_graph


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--remat", "--wire", "int8"], "--remat repeats exchanges"),
        (["--remat", "--wire-backward", "bfloat16"], "--remat repeats exchanges"),
        (["--remat", "--algorithm", "cd-2"], "--remat repeats exchanges"),
        (["--model", "gin", "--dtype", "bfloat16"], "bfloat16 is for sage, gcn, gat"),
        (["--columns", "0"], "columns is 0: expected a whole number"),
        (["--columns", "2", "--model", "gat"], "--columns is for models of sums and means: gat"),
        (["--columns", "2", "--update", "copies"], "columns are for update on owners"),
        (["--columns", "2", "--batch", "cluster:2"], "cluster batches are for one rank a part"),
        (["--columns", "2", "--inductive"], "inductive training is for one rank a part"),
        (
            ["--columns", "2", "--restarts", "1", "--min-ranks", "1"],
            "with --columns ranks are started again as many as before",
        ),
        (["--norm", "batch", "--dtype", "bfloat16"], "bfloat16 is for sage, gcn, gat"),
    ],
)
def test_settings_are_refused_before_ranks_start(refused, parts, tmp_path, words, says):
    refused("train", parts, "--run-dir", tmp_path / "run", *words, says=says)


@pytest.mark.parametrize("model", ["gcn2", "appnp"])
@pytest.mark.parametrize("weight", [0.0, -1.0, 1e-46])
def test_weights_that_a_model_divides_by(refused, tmp_path, model, weight):
    weights = np.ones(60)
    weights[5] = weight
    edges = np.random.default_rng(0).integers(0, 20, (60, 2))
    graph = GraphData.from_arrays(edges, 20, feats=np.ones((20, 2)), labels=np.arange(20) % 3, edge_weight=weights)
    place = tmp_path / "parts"
    manifest = partition_graph(graph, 2, place, "libra", direction="stored", split="0.6,0.2,0.2", say=lambda line: None)
    assert manifest["graph"]["nonpositive_weights"] == 1
    says = f"--weighted of {model} divides by the root of sums of edge weights: 1 weights"
    refused("train", place, "--model", model, "--weighted", "--run-dir", tmp_path / "run", says=says)
