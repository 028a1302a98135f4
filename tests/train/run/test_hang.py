"""A rank that hangs, is stopped, or dies: the job ends in time, says who and where, and leaves nobody behind."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from distgnn.system.launch import find_mpiexec, mpi_flavor, mpiexec_command, rank_environment

SCRIPT = """
import os, signal, sys, time
import numpy as np, torch
from mpi4py import MPI
sys.path.insert(0, {harness!r})
from cut_graphs import dist_graph, random_graph
from distgnn.config import ModelConfig, TrainConfig
from distgnn.nn import build_model
from distgnn.train import Trainer

def fault(rank, kind):
    if rank != 1:
        return
    if kind == "loop":
        while True:
            time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGSTOP)

class Model(torch.nn.Module):
    def __init__(self, graph):
        super().__init__()
        self.inner, self.graph = build_model(ModelConfig("sage", 8), graph.num_feats, graph.num_classes), graph
    def forward(self, graph, feats):
        if self.training and graph.step == 3 and watched:
            fault(graph.rank, sys.argv[2])
        return self.inner(graph, feats)

graph = dist_graph(random_graph(1), MPI.COMM_WORLD)
watched = False
Trainer(Model(graph), graph, TrainConfig(epochs=2)).fit()  # compiles kernels, which may take longer than the time limit
watched = True
config = TrainConfig(epochs=50, timeout=5, run_dir=sys.argv[1], checkpoint_every=2)
Trainer(Model(graph), graph, config).fit()
"""


def left_behind(mark: str) -> list[int]:
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (folder / "environ").read_bytes() and " Z " not in (folder / "stat").read_text():
                found.append(int(folder.name))
        except OSError:
            continue
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "says"),
    [
        ("loop", r"rank 1 is in epoch 3, forward for \d+ s at .*\.py:\d+ in fault; the others wait"),
        ("stop", r"rank 1 does not answer \(stopped, or its machine is gone\); it was last in "),
    ],
)
def test_a_rank_that_does_not_go_on(tmp_path, kind, says):
    (tmp_path / "script.py").write_text(SCRIPT.format(harness=str(Path(__file__).parents[2] / "harness")))
    mpiexec = find_mpiexec()
    flavor = mpi_flavor(mpiexec)
    command = [*mpiexec_command(mpiexec, flavor, 2), sys.executable, str(tmp_path / "script.py"), str(tmp_path / "run")]
    mark = f"DISTGNN_TEST_MARK={tmp_path}"
    environment = os.environ | rank_environment(2, 1, flavor) | dict([mark.split("=", 1)])
    done = subprocess.run(
        [*command, kind], env=environment, capture_output=True, text=True, timeout=900, check=False, cwd=tmp_path
    )
    assert done.returncode == 124, done
    assert re.search(says, done.stderr), done.stderr
    assert len(re.findall(r"distgnn: error: nothing moved for [\d.]+ s \(--timeout 5\)", done.stderr)) == 1
    deadline = time.monotonic() + 600
    while left_behind(mark) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not left_behind(mark)
    assert (tmp_path / "run" / "checkpoint" / "epoch-00000002" / "checkpoint.json").is_file()
    assert "nothing moved" in (tmp_path / "run" / "logs" / "rank-0.log").read_text()
