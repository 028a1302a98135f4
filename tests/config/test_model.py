"""What a model needs of a graph, and does with its edge weights; what it says of itself."""

import numpy as np
import pytest

from distgnn.config import ModelConfig, Settings, check_graph_has
from distgnn.config.model import Block, decoder_for
from distgnn.datasets import GraphData
from distgnn.datasets.findings.findings import Findings
from distgnn.errors import InputError
from distgnn.partition import partition_graph


@pytest.mark.parametrize(
    ("model", "weights", "said"),
    [
        (ModelConfig("gcn", 8), True, "gcn leaves out the edge weights; --weighted "),
        (ModelConfig("gine", 8), True, "gine leaves out the edge weights; model gin with --weighted "),
        (ModelConfig("gcn", 8, weighted=True), True, ""),
        (ModelConfig("gcn", 8), False, ""),
    ],
)
def test_edge_weights_that_a_model_leaves_out_are_said(model, weights, said):
    line = Settings(model=model).weights_left_out({"edge_weight": weights})
    assert said in line and bool(line) == bool(said)


@pytest.mark.parametrize("weight", [0.0, -1.0, 1e-46])
def test_weights_that_a_model_divides_by(refused, tmp_path, weight):
    weights = np.ones(60)
    weights[5] = weight
    edges = np.random.default_rng(0).integers(0, 20, (60, 2))
    fields = {"feats": np.ones((20, 2)), "labels": np.arange(20) % 3, "edge_weight": weights}
    graph = GraphData.from_arrays(edges, 20, findings=Findings(), **fields)
    place = tmp_path / "parts"
    manifest = partition_graph(graph, 2, place, "libra", direction="stored", split="0.6,0.2,0.2", say=lambda line: None)
    assert manifest["graph"]["nonpositive_weights"] == 1
    for model in ("gcn2", "appnp"):
        says = f"--weighted of {model} divides by the root of sums of edge weights: 1 weights"
        with pytest.raises(InputError, match=says):
            Settings(model=ModelConfig(model, weighted=True)).checked().check_graph(manifest["graph"])
    refused("train", place, "--model", model, "--weighted", "--run-dir", tmp_path / "run", says=says)


@pytest.mark.parametrize(
    ("model", "says"),
    [
        ("edgegat", "edgegat needs edge features: this graph has none"),
        ("rgcn", "rgcn needs edge types: this graph has none"),
        ("hgt", "hgt is of graphs of several types"),
    ],
)
def test_a_graph_without_what_a_model_needs(model, says):
    with pytest.raises(InputError, match=says):
        check_graph_has(model, 0, 0)
    check_graph_has("sage", 0, 0)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"name": "sgae"}, "unknown model 'sgae': choose from sage, .*did you mean sage?"),
        ({"block": "preact", "head": "cat"}, "block preact adds all layers up: leave head cat out"),
        ({"input_dropout": 1.0}, "input_dropout is 1.0"),
        ({"dropout": 1.5}, "dropout is 1.5"),
        ({"name": "gcn2", "stem": "linear"}, "gcn2 has a connection to its first rows already"),
    ],
)
def test_models_that_cannot_be(settings, says):
    with pytest.raises(InputError, match=says):
        ModelConfig(**settings).check()


def test_what_follows_from_a_model():
    assert [ModelConfig(name).by_arc for name in ("sage", "gat", "appnp")] == ["", "gat", ""]
    assert ModelConfig("appnp", weighted=True).by_arc == "appnp with --weighted"
    assert Block().is_bare and Block("preact").has_stem and Block("preact").has_head
    assert [decoder_for(task, None) for task in ("node", "link", "edge")] == [None, "dot", "concat"]
