"""All ranks begin with rank 0's states of random numbers, and with one order of sets."""

import random

import numpy as np
import pytest
import torch
from command import distgnn, python

from distgnn.partition import partition_graph
from distgnn.system.scripts.run_script import share_random_states

SETS = """
import os, sys
import distgnn as dg
data = dg.load(sys.argv[1])
print("order", "|".join({f"{name}_mask" for name in ("train", "val", "test", "seen", "held", "out")}))
"""


@pytest.mark.mpi(3)
def test_ranks_draw_alike(comm):
    random.seed(comm.rank)
    np.random.seed(comm.rank)
    torch.manual_seed(comm.rank)
    share_random_states(comm)
    drawn = random.random(), np.random.beta(1, 1), torch.rand(()).item()
    assert comm.bcast(drawn, root=0) == drawn


@pytest.mark.slow
@pytest.mark.parametrize("under", ["distgnn run", "mpiexec"])
def test_sets_of_texts(tmp_path, monkeypatch, under):
    """`distgnn run` gives all ranks one seed for hashes; where another starter does not, a line says so."""
    monkeypatch.delenv("PYTHONHASHSEED", raising=False)
    script, parts = tmp_path / "script.py", tmp_path / "parts"
    script.write_text(SETS)
    partition_graph("communities:nodes=60", 2, parts)
    done = distgnn("run", "-n", 2, script, parts) if under == "distgnn run" else python(script, parts, under=2)
    assert done.returncode == 0, done.stderr
    orders = {line for line in done.stdout.splitlines() if line.startswith("order")}
    assert (len(orders) == 1) or under == "mpiexec"
    assert ("PYTHONHASHSEED=0" in done.stderr) == (under == "mpiexec"), done.stderr
