"""`distgnn warmup`: what it compiles is all that a cut and a training run with these options need."""

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from distgnn.cli.commands import setup
from distgnn.datasets import load_graph
from distgnn.system.launch import find_mpiexec, mpi_flavor, mpiexec_command

GRAPH = "communities:nodes=3000,communities=20,avg_degree=6,feats=8,classes=4,seed=2"
USED = """
import gc, json, os, sys
out = sys.argv.pop(1)
from distgnn.cli import main
code = main()
from numba.core.registry import CPUDispatcher
gc.unfreeze()  # what was made before the training began is not looked for, too
with open(f"{out}/{os.getpid()}", "w") as file:
    for one in gc.get_objects():
        if isinstance(one, CPUDispatcher) and one.__module__.startswith("distgnn."):
            captured = [repr(cell.cell_contents) for cell in one.py_func.__closure__ or ()]
            made = [value for value in captured if " at 0x" not in value]  # a tile, numbers, no functions
            for signature in one.signatures:
                print(json.dumps([one.__module__, one.py_func.__qualname__, made, str(signature)]), file=file)
sys.exit(code)
"""


def kernels_of(words: list, ranks: int) -> set[str]:
    """The kernels that a command of the program calls, on so many ranks; it may find all of them compiled."""
    mpiexec = find_mpiexec()
    with tempfile.TemporaryDirectory() as out:
        command = [*mpiexec_command(mpiexec, mpi_flavor(mpiexec), ranks), sys.executable, "-c", USED, out]
        done = subprocess.run([*command, *map(str, words)], capture_output=True, text=True, timeout=900, check=False)
        assert done.returncode == 0, done.stderr
        files = list(Path(out).iterdir())
        assert len(files) == ranks
        return {line for file in files for line in file.read_text().splitlines()}


@pytest.mark.slow
def test_after_warmup_neither_a_cut_nor_training_compiles(run, tmp_path, monkeypatch):
    """Which kernels each calls is compared: to compile them into an empty folder would take minutes."""
    cache, made = tmp_path / "cache", {"partition": set(), "train": set()}

    def start(words, environment):
        assert environment["NUMBA_CACHE_DIR"] == str(cache)
        made[words[0]] |= kernels_of(words, 2 if words[0] == "train" else 1)

    measured = []
    monkeypatch.setattr(setup, "_distgnn", start)
    monkeypatch.setattr(
        setup, "_python", lambda words, what, environment: measured.append(environment["NUMBA_CACHE_DIR"])
    )
    options = ["--model", "gcn", "--hidden-feats", 8]
    code, out, err = run("warmup", "--cache", cache, *options, "--feats", 8, "--classes", 4)
    assert code == 0 and "0 kernels in" in out and measured == [str(cache)], err
    parts = tmp_path / "parts"
    cut = kernels_of(["partition", GRAPH, "--parts", 2, "--out", parts], 1)
    trained = kernels_of(["train", parts, *options, "--epochs", 3, "--run-dir", tmp_path / "run"], 2)
    assert len(cut) > 20 and not cut - made["partition"]
    assert len(trained) > 10 and not trained - made["train"]


def test_refused_before_anything_is_compiled(refused, tmp_path):
    refused("warmup", "--cache", tmp_path / "cache", "--model", "sagee", says="did you mean sage?")
    refused("warmup", "--cache", tmp_path / "cache", "--dtype", "float16", says="unknown dtype")
    refused("warmup", "--cache", tmp_path / "cache", "--model", "rgcn", says="train one epoch")


@pytest.mark.parametrize("classes", [1, 12, 40, 349])
def test_any_number_of_classes(classes):
    """There are graphs of as many as the guide's recipe names, and as OGB's."""
    assert load_graph(setup.small_graph(5, classes)).num_classes == classes
