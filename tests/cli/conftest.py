"""Running the command line in this process, and small folders to run it on."""

import sys

import numpy as np
import pytest

from distgnn.cli import main


@pytest.fixture
def run(monkeypatch, capsys):
    """`run("train", "parts")` gives (exit code, standard output, standard error)."""

    def run(*words) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["distgnn", *map(str, words)])
        code = main()
        out, err = capsys.readouterr()
        return code, out, err

    return run


@pytest.fixture
def refused(run, tmp_path):
    """`refused("train", "nowhere", says="no such folder")`: one line, exit code 2, and nothing new on disk."""

    def refused(*words, says: str) -> None:
        before = sorted(tmp_path.rglob("*"))
        code, out, err = run(*words)
        assert code == 2, (out, err)
        assert err.startswith("distgnn: error: ")
        assert err.count("\n") == 1, err
        assert says in err
        assert "Traceback" not in out + err
        assert sorted(tmp_path.rglob("*")) == before

    return refused


@pytest.fixture
def graph_folder(tmp_path):
    """A plain graph folder of 40 vertices."""
    from distgnn.datasets import GraphData

    random = np.random.default_rng(0)
    data = GraphData.from_arrays(
        random.integers(0, 40, (150, 2)),
        40,
        directed=False,
        name="small",
        feats=random.standard_normal((40, 6)).astype(np.float32),
        labels=random.integers(0, 3, 40),
        train=np.arange(20),
        valid=np.arange(20, 30),
        test=np.arange(30, 40),
    )
    data.save(tmp_path / "graph")
    return tmp_path / "graph"


@pytest.fixture
def parts(run, graph_folder, tmp_path):
    """The same graph in one part."""
    code, _, err = run("partition", graph_folder, "--parts", 1, "--out", tmp_path / "parts", "--quiet")
    assert code == 0, err
    return tmp_path / "parts"


@pytest.fixture
def two_parts(run, graph_folder, tmp_path):
    """The same graph in two parts."""
    code, _, err = run("partition", graph_folder, "--parts", 2, "--out", tmp_path / "parts-2", "--quiet")
    assert code == 0, err
    return tmp_path / "parts-2"
