"""Tasks from the command line: split, train, resume, predict; one line for what cannot be; a run as a DGL model."""

import json
import subprocess
import sys

import numpy as np
import pytest
from command import distgnn

from distgnn.datasets import GraphData
from distgnn.partition import partition_graph
from distgnn.partition.repartition import load_whole

SHORT = ["--epochs", 4, "--hidden-feats", 8, "--eval-every", 2, "--quiet"]


@pytest.fixture
def link_parts(graph_folder, tmp_path):
    partition_graph(graph_folder, 1, tmp_path / "links", link_split="0.1,0.2")
    return tmp_path / "links"


@pytest.mark.slow
def test_scores_of_links_do_not_depend_on_the_parts(ran, graph_folder, tmp_path):
    """Trained on one rank, predicted on 1 and 2. That training does not depend on ranks: tests/train/test_tasks.py."""
    for parts in (1, 2):
        words = ["--parts", parts, "--out", tmp_path / f"parts-{parts}", "--link-split", "0.1,0.2", "--quiet"]
        ran("partition", graph_folder, *words)
    words = ["train", tmp_path / "parts-1", "--task", "link", *SHORT[:-1], "--run-dir", tmp_path / "run"]
    out = ran(*words)
    assert "test mrr" in out
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert {"test_mrr", "test_rocauc", "test_hits@50"} <= summary.keys()
    outs = [tmp_path / f"scores-{parts}.npy" for parts in (1, 2)]
    ran("predict", tmp_path / "run", tmp_path / "parts-1", "--out", outs[0])
    done = distgnn("predict", tmp_path / "run", tmp_path / "parts-2", "--out", outs[1])
    assert done.returncode == 0, done.stderr
    scores = [np.load(out) for out in outs]
    whole = load_whole(tmp_path / "parts-1").graph
    assert scores[0].shape == (len(whole.test_edges),) and scores[0].dtype == np.float32
    np.testing.assert_allclose(*scores, rtol=1e-4, atol=1e-5)  # float32 sums in another order


def test_training_and_resuming_in_this_process(run, ran, link_parts, tmp_path):
    words = ["train", link_parts, "--task", "link", "--set", "decoder=mlp", *SHORT, "--run-dir", tmp_path / "run"]
    ran(*words)
    ran("train", link_parts, "--run-dir", tmp_path / "run", "--resume", "--epochs", 6, "--quiet")
    assert 'task = "link"' in (tmp_path / "run" / "config.toml").read_text()
    code, _, err = run(
        "train", link_parts, "--run-dir", tmp_path / "run", "--resume", "--set", "decoder=concat", "--quiet"
    )
    assert code == 2 and "decoder is mlp there, concat here" in err
    code, _, err = run("predict", tmp_path / "run", link_parts, "--out", tmp_path / "x", "--classes")
    assert code == 2 and "this run is of task link" in err and err.count("\n") == 1, err


def test_values_and_classes_of_edges(ran, tmp_path):
    random = np.random.default_rng(0)
    edges, feats = random.integers(0, 40, (150, 2)), random.standard_normal((40, 6)).astype(np.float32)
    splits = {"train": slice(0, 80), "valid": slice(80, 110), "test": slice(110, 150)}
    ids = {
        name: np.arange(40)[part] for name, part in zip(splits, (slice(20), slice(20, 30), slice(30, 40)), strict=True)
    }
    of_edges = {f"{name}_edges": edges[rows] for name, rows in splits.items()}
    of_edges |= {f"{name}_edge_labels": random.integers(0, 3, len(edges[rows])) for name, rows in splits.items()}
    data = GraphData.from_arrays(edges, 40, False, feats=feats, node_values=random.random((40, 2)), **ids, **of_edges)
    partition_graph(data, 1, tmp_path / "parts")
    for task, shape in (("regression", (40, 2)), ("edge", (40, 3))):
        ran("train", tmp_path / "parts", "--task", task, *SHORT, "--run-dir", tmp_path / task)
        ran("predict", tmp_path / task, tmp_path / "parts", "--out", tmp_path / f"{task}.npy", "--quiet")
        assert np.load(tmp_path / f"{task}.npy").shape == shape


def test_bench_and_split_refusals(refused, graph_folder, parts, tmp_path):
    refused("bench", parts, "--task", "link", says="No such option: --task")
    words = ["partition", graph_folder, "--parts", 1, "--out", tmp_path / "x"]
    refused(*words, "--link-split", "0.9,0.2", says="together more than 0 and less than 1")
    refused(*words, "--link-split", "some", says="expected shares of valid and test edges")
    np.save(graph_folder / "test_edges.npy", np.load(graph_folder / "edges.npy")[3:4])
    refused(*words, says="is still an edge of the graph")


THREE_LINES = """
import distgnn, sys, numpy
model = distgnn.to_dgl("run")
graph = distgnn.load_graph("graph").to_dgl()
logits = model(graph, graph.ndata["feat"])
numpy.save("exported.npy", logits.detach().numpy())
print([name for name in sys.modules if name in ("mpi4py", "distgnn.nn", "distgnn.graph.dist_graph", "distgnn.comm")])
"""


@pytest.mark.slow
def test_a_run_is_a_dgl_model_without_mpi(run, parts, tmp_path):
    """Of raw features, whatever the run did to them."""
    words = ["--epochs", 2, "--hidden-feats", 8, "--run-dir", tmp_path / "run", "--feat-norm", "standardize,row-l2"]
    assert run("train", parts, *words, "--quiet")[0] == 0
    assert run("predict", tmp_path / "run", parts, "--out", tmp_path / "logits.npy", "--quiet")[0] == 0
    command = [sys.executable, "-c", THREE_LINES]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=900, check=False)
    assert done.stdout.strip() == "[]", done.stderr
    expected, exported = np.load(tmp_path / "logits.npy"), np.load(tmp_path / "exported.npy")
    np.testing.assert_allclose(exported, expected, rtol=1e-4, atol=1e-5)  # float32 sums in another order
