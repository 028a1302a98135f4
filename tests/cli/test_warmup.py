"""`distgnn warmup`: what it compiles is all that a cut and a training run in the same cache need."""

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from command import distgnn

from distgnn import partition
from distgnn.cli.commands.warmup import small_graph
from distgnn.datasets import load_graph

GRAPH = "communities:nodes=3000,communities=20,avg_degree=6,feats=24,classes=5,seed=2"


@pytest.mark.slow
def test_after_warmup_training_compiles_nothing(tmp_path, monkeypatch):
    cache, parts = tmp_path / "cache", tmp_path / "parts"
    for folder in {file.parent for file in Path(partition.__file__).parent.rglob("__pycache__/*.nbi")}:
        # Of cuts, which take longest, what other tests have made: the next test is about them. Names are numba's.
        source = str(folder.parent)
        shutil.copytree(folder, cache / f"{folder.parent.name}_{hashlib.sha1(source.encode()).hexdigest()}")
    sizes = ("--feats", 24, "--hidden-feats", 16, "--classes", 5)
    done = distgnn("warmup", "--cache", cache, "--model", "gcn", *sizes, timeout=900)
    assert done.returncode == 0, done.stderr
    made = sorted(cache.rglob("*.nbc"))
    assert f"{len(made)} kernels in " in done.stdout

    monkeypatch.setenv("NUMBA_CACHE_DIR", str(cache))
    for words in (
        ("partition", GRAPH, "--parts", 2, "--out", parts),
        ("train", parts, "--model", "gcn", "--hidden-feats", 16, "--epochs", 3, "--run-dir", tmp_path / "run"),
    ):
        done = distgnn(*words, timeout=600)
        assert done.returncode == 0, done.stderr
        assert "compiling" not in done.stderr
    assert sorted(cache.rglob("*.nbc")) == made


CUT_BOTH = """
import sys
from distgnn.kernels import compilation
from distgnn.partition import partition_graph

for number, graph in enumerate(sys.argv[2:]):
    partition_graph(graph, 2, f"{sys.argv[1]}/{number}")
    print(compilation()[:2])
"""


@pytest.mark.slow
def test_the_small_graphs_cut_needs_every_kernel_of_a_real_ones(tmp_path):
    command = [sys.executable, "-c", CUT_BOTH, str(tmp_path), small_graph(24, 5), GRAPH]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    first, second = done.stdout.splitlines()
    assert first == second and first != "(0, 0)"


def test_refused_before_anything_is_compiled(refused, tmp_path):
    refused("warmup", "--cache", tmp_path / "cache", "--model", "sagee", says="did you mean sage?")
    refused("warmup", "--cache", tmp_path / "cache", "--dtype", "float16", says="unknown dtype")
    refused("warmup", "--cache", tmp_path / "cache", "--model", "rgcn", says="train one epoch")


@pytest.mark.parametrize("classes", [1, 12, 40, 349])
def test_any_number_of_classes(classes):
    """There are graphs of as many as the guide's recipe names, and as OGB's."""
    assert load_graph(small_graph(5, classes)).num_classes == classes
