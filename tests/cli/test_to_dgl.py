"""The README's three lines: a run of the program as a plain DGL model."""

import subprocess
import sys

import numpy as np
import pytest

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
