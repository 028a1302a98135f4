"""Edge features, types and the inductive protocol through the program, from folder to predictions."""

import json

import numpy as np
import pytest

import distgnn
from distgnn.datasets import load_graph


@pytest.fixture
def typed_parts(run, graph_folder, tmp_path):
    """The small graph with edge features and types, in one part."""
    random = np.random.default_rng(1)
    np.save(graph_folder / "edge_feats.npy", random.standard_normal((150, 8)).astype(np.float32))
    np.save(graph_folder / "edge_types.npy", random.integers(0, 3, 150))
    np.save(graph_folder / "node_types.npy", random.integers(0, 2, 40))
    code, _, err = run("partition", graph_folder, "--parts", 1, "--out", tmp_path / "typed", "--quiet")
    assert code == 0, err
    return tmp_path / "typed"


@pytest.mark.parametrize(
    "words",
    [
        ("--model", "edgegat"),
        ("--model", "gine", "--inductive"),
        ("--model", "rgcn", "--num-bases", 2, "--inductive"),
    ],
    ids=lambda words: words[1],
)
def test_a_run_and_its_exported_model_predict_the_same(run, typed_parts, graph_folder, tmp_path, words):
    common = ["--epochs", 3, "--hidden-feats", 8, "--run-dir", tmp_path / "run", "--quiet"]
    code, _, err = run("train", typed_parts, *words, *common)
    assert code == 0, err
    lines = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert len({line["loss"] for line in lines}) == 3 and 0 <= lines[-1]["test_metric"] <= 1
    out = tmp_path / "logits.npy"
    assert run("predict", tmp_path / "run", typed_parts, "--out", out, "--quiet")[0] == 0
    whole = load_graph(str(graph_folder)).to_dgl()
    exported = distgnn.to_dgl(str(tmp_path / "run"))(whole, whole.ndata["feat"]).detach().numpy()
    np.testing.assert_allclose(exported, np.load(out), rtol=1e-4, atol=1e-5)  # float32 sums in another order


def test_a_typed_graph_is_cut_shown_and_trained_on(run, tmp_path):
    """The program's own rgcn, from features of one width and none; `info` has a row for each type and relation."""
    typed = "typed:nodes=900,classes=4,noise=0.5,mixing=0.1"
    code, _, err = run("partition", typed, "--parts", 1, "--out", tmp_path / "parts", "--quiet")
    assert code == 0, err
    shown = run("info", tmp_path / "parts")[1]
    assert (
        "paper  train     171" in shown
        and "author rev_writes" not in shown
        and "paper rev_writes author  arcs" in shown
    )
    words = ("--model", "rgcn", "--hidden-feats", 16, "--num-layers", 2, "--epochs", 30, "--quiet")
    code, _, err = run("train", tmp_path / "parts", *words, "--run-dir", tmp_path / "run")
    assert code == 0, err
    assert json.loads((tmp_path / "run" / "summary.json").read_text())["test_metric"] > 0.6


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--model", "edgegat"), "edgegat needs edge features: this graph has none"),
        (("--model", "rgcn"), "rgcn needs edge types: this graph has none"),
        (("--num-bases", 2), "num_bases is for rgcn"),
        (("--model", "gine", "--weighted"), "gine takes no edge weights: choose gin"),
    ],
    ids=lambda value: str(value[0]) if isinstance(value, tuple) else "",
)
def test_what_the_graph_or_the_model_has_not_is_refused(refused, parts, tmp_path, words, says):
    refused("train", parts, *words, "--epochs", 1, "--run-dir", tmp_path / "run", says=says)
