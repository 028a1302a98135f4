"""Edge features, types and the inductive protocol through the program, from folder to predictions."""

import json

import numpy as np
import pytest

import distgnn
from distgnn.datasets import load_graph
from distgnn.errors import InputError


@pytest.fixture
def typed_parts(ran, graph_folder, tmp_path):
    """The small graph with edge features and types, in one part."""
    random = np.random.default_rng(1)
    np.save(graph_folder / "edge_feats.npy", random.standard_normal((150, 8)).astype(np.float32))
    np.save(graph_folder / "edge_types.npy", random.integers(0, 3, 150))
    np.save(graph_folder / "node_types.npy", random.integers(0, 2, 40))
    ran("partition", graph_folder, "--parts", 1, "--out", tmp_path / "typed", "--quiet")
    return tmp_path / "typed"


@pytest.mark.parametrize(
    "words",
    [
        ("--model", "edgegat"),
        ("--model", "gine", "--inductive"),
        ("--model", "rgcn", "--set", "num_bases=2", "--inductive"),
    ],
    ids=lambda words: words[1],
)
def test_a_run_and_its_exported_model_predict_the_same(run, ran, typed_parts, graph_folder, tmp_path, words):
    common = ["--epochs", 3, "--hidden-feats", 8, "--run-dir", tmp_path / "run", "--quiet"]
    ran("train", typed_parts, *words, *common)
    lines = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert len({line["loss"] for line in lines}) == 3 and 0 <= lines[-1]["test_metric"] <= 1
    out = tmp_path / "logits.npy"
    assert run("predict", tmp_path / "run", typed_parts, "--out", out, "--quiet")[0] == 0
    whole = load_graph(str(graph_folder)).to_dgl()
    exported = distgnn.to_dgl(str(tmp_path / "run"))(whole, whole.ndata["feat"]).detach().numpy()
    np.testing.assert_allclose(exported, np.load(out), rtol=1e-4, atol=1e-5)  # float32 sums in another order


@pytest.fixture(scope="module")
def several_types(tmp_path_factory):
    """Parts of a graph of four types; three have no features."""
    from distgnn.partition import partition_graph

    folder = tmp_path_factory.mktemp("typed") / "parts"
    graph = load_graph("typed:nodes=900,classes=4,noise=0.5,mixing=0.1")
    partition_graph(graph, 1, folder, say=lambda line: None)
    return folder


@pytest.mark.parametrize(
    "words",
    [
        ("rgcn", "--set", "num_bases=2", "--runs", 2, "--target", "paper"),
        ("rgat", "--dtype", "float64", "--recipe", "fast", "--set", "verify_every=5"),
        ("hgt", "--norm", "none", "--dropout", 0, "--memory-report", "--offload", "."),
    ],
    ids=lambda words: words[0],
)
def test_a_typed_graph_is_shown_trained_on_and_predicted(run, ran, several_types, tmp_path, words):
    small = ("--hidden-feats", 16, "--num-layers", 2, "--epochs", 30, "--lr", 0.01, "--quiet")
    ran("train", several_types, "--model", *words, *small, "--run-dir", tmp_path / "run")
    assert json.loads((tmp_path / "run" / "summary.json").read_text())["test_metric"] > 0.6
    one = tmp_path / "run" / "seed-0" if "--runs" in words else tmp_path / "run"
    ran("predict", one, several_types, "--out", tmp_path / "rows.npy", "--quiet")
    graph = load_graph("typed:nodes=900,classes=4,noise=0.5,mixing=0.1")
    rows, papers = np.load(tmp_path / "rows.npy"), graph.typed["paper"]
    right = rows.argmax(1) == papers["labels"]
    expected = json.loads((one / "summary.json").read_text())["test_metric"]
    assert rows.shape == (342, 4) and right[papers["test_mask"]].mean() == pytest.approx(expected)
    with pytest.raises(InputError, match="becomes no other library's model"):
        distgnn.to_pyg(str(one))


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("rgat", "--norm", "batch"), "norm layer or none"),
        (("rgat", "--remat"), "plain layers"),
        (("hgt", "--block", "residual"), "plain layers"),
        (("hgt", "--task", "link"), "node and regression, not link"),
        (("hgt", "--recipe", "tuned"), "searches among models of graphs of one type"),
        (("hgt", "--target", "ship"), "there is no type 'ship'"),
        (("hgt", "--hidden-feats", 10), "expected a multiple of num_heads"),
        (("sage", "--target", "paper"), "a target is for models that know types: rgcn, rgat, hgt"),
    ],
    ids=lambda value: "-".join(map(str, value)) if isinstance(value, tuple) else "",
)
def test_what_several_types_do_not_go_with_is_refused(refused, several_types, tmp_path, words, says):
    refused("train", several_types, "--model", *words, "--epochs", 1, "--run-dir", tmp_path / "run", says=says)
