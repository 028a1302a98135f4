"""`distgnn warmup`: what it compiles is all that a cut and a training run in the same cache need."""

import pytest
from command import distgnn

from distgnn.cli.commands.warmup import small_graph
from distgnn.datasets import load_graph


@pytest.mark.slow
def test_after_warmup_nothing_is_compiled(tmp_path, monkeypatch):
    cache, parts = tmp_path / "cache", tmp_path / "parts"
    sizes = ("--feats", 24, "--hidden-feats", 16, "--classes", 5)
    done = distgnn("warmup", "--cache", cache, "--model", "gcn", *sizes, timeout=900)
    assert done.returncode == 0, done.stderr
    made = sorted(cache.rglob("*.nbc"))
    assert f"{len(made)} kernels in " in done.stdout

    monkeypatch.setenv("NUMBA_CACHE_DIR", str(cache))
    graph = "communities:nodes=3000,communities=20,avg_degree=6,feats=24,classes=5,seed=2"
    for words in (
        ("partition", graph, "--parts", 2, "--out", parts),
        ("train", parts, "--model", "gcn", "--hidden-feats", 16, "--epochs", 3, "--run-dir", tmp_path / "run"),
    ):
        done = distgnn(*words, timeout=600)
        assert done.returncode == 0, done.stderr
        assert "compiling" not in done.stderr
    assert sorted(cache.rglob("*.nbc")) == made


def test_refused_before_anything_is_compiled(refused, tmp_path):
    refused("warmup", "--cache", tmp_path / "cache", "--model", "sagee", says="did you mean sage?")
    refused("warmup", "--cache", tmp_path / "cache", "--dtype", "float16", says="unknown dtype")
    refused("warmup", "--cache", tmp_path / "cache", "--model", "rgcn", says="train one epoch")


@pytest.mark.parametrize("classes", [1, 12, 40, 349])
def test_any_number_of_classes(classes):
    """There are graphs of as many as the guide's recipe names, and as OGB's."""
    assert load_graph(small_graph(5, classes)).num_classes == classes
