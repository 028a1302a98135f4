"""Running the command line in this process, and small folders to run it on."""

import shutil
import sys

import numpy as np
import pytest
from command import distgnn

from distgnn.cli import main
from distgnn.datasets import GraphData
from distgnn.partition import partition_graph


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
def ran(run):
    """A function that runs a command, which must end well, and returns what it prints."""

    def ran(*words) -> str:
        code, out, err = run(*words)
        assert code == 0, err
        return out

    return ran


@pytest.fixture
def refused(run, tmp_path):
    """`refused("train", "nowhere", says="no such folder")`: one line, exit code 2, and nothing new on disk."""

    def refused(*words, says: str) -> None:
        before = sorted(tmp_path.rglob("*"))
        code, out, err = run(*words)
        assert code == 2, (out, err)
        # Whichever test is first compiles, and that is said.
        err = "".join(line for line in err.splitlines(keepends=True) if not line.startswith("distgnn: compiling"))
        assert err.startswith("distgnn: error: ")
        assert err.count("\n") == 1, err
        assert says in err
        assert "Traceback" not in out + err
        assert sorted(tmp_path.rglob("*")) == before

    return refused


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    """A plain graph folder of 40 vertices, and the graph in one and in two parts: tests get copies, and damage them."""
    random, folder = np.random.default_rng(0), tmp_path_factory.mktemp("made")
    data = GraphData.from_arrays(
        random.integers(0, 40, (150, 2)),
        40,
        directed=False,
        name="small",
        feats=random.standard_normal((40, 8)).astype(np.float32),
        labels=random.integers(0, 4, 40),
        train=np.arange(20),
        valid=np.arange(20, 30),
        test=np.arange(30, 40),
    )
    data.save(folder / "graph")
    for count, name in ((1, "parts"), (2, "parts-2")):
        partition_graph(str(folder / "graph"), count, folder / name)
    return folder


@pytest.fixture(scope="session")
def trained(made):
    """The graph in two parts trained on two ranks by the program, once: (its process, its run folder); not written."""
    words = ["--epochs", 4, "--hidden-feats", 8, "--num-layers", 2, "--eval-every", 2, "--run-dir", made / "run"]
    done = distgnn("train", made / "parts-2", *words)
    assert done.returncode == 0, done.stderr
    return done, made / "run"


@pytest.fixture
def graph_folder(made, tmp_path):
    return shutil.copytree(made / "graph", tmp_path / "graph")


@pytest.fixture
def parts(made, graph_folder, tmp_path):
    return shutil.copytree(made / "parts", tmp_path / "parts")


@pytest.fixture
def two_parts(made, graph_folder, tmp_path):
    return shutil.copytree(made / "parts-2", tmp_path / "parts-2")
