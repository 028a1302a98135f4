"""A loop of one's own in which a rank leaves the others waiting is ended with a line that names it."""

import json
import re
import time
from types import SimpleNamespace

import pytest
from command import distgnn
from cut_graphs import random_graph

from distgnn.comm.ending import loop_watch
from distgnn.comm.ending.loop_watch import watchdog
from distgnn.errors import InputError
from distgnn.partition import partition_graph
from distgnn.system.jobs.rank_log import RankLog
from distgnn.system.jobs.watchdog import Loop, Watchdog
from distgnn.system.launch import TIMEOUT_VARIABLE

SCRIPT = """
import sys, time
import torch
import distgnn as dg
graph = dg.load(sys.argv[1])
model = dg.nn.GraphSAGE(graph.num_feats, 8, graph.num_classes)
optimizer = dg.DistributedOptimizer(torch.optim.SGD(model.parameters(), 0.1), graph)
for graph.step in range(6):
    while graph.step == 3 and graph.rank == 1:
        time.sleep(0.01)
    optimizer.zero_grad()
    graph.global_mean(model(graph, graph.feats).square().sum(1)).backward()
    optimizer.step()
"""


@pytest.fixture
def watch(tmp_path, monkeypatch):
    """Rank 0 of two with a limit of 8 s, whose last exchange was 10 s ago; the clock is moved by hand."""
    clock = SimpleNamespace(now=0.0, moves=(4, 1))
    log = RankLog(str(tmp_path), 0)
    watch = Watchdog(SimpleNamespace(rank=0, size=2), log, 8.0, Loop(lambda: clock.moves, "dg.watchdog"))
    monkeypatch.setattr(watch, "_age", lambda: clock.now)
    clock.now, watch.clock = 10.0, clock
    return watch


def tell(watch, **status) -> None:
    (watch.log.folder / "rank-1.status").write_text(json.dumps(status))


def waits(watch, monkeypatch, what: str = "exchange") -> None:
    monkeypatch.setattr(watch, "_place", lambda: ("exchange.py:1 in finish", what))


def test_a_rank_that_left_the_loop_is_named_by_those_that_wait(watch, monkeypatch):
    waits(watch, monkeypatch)
    tell(watch, ended=True)
    assert watch._check() == "nothing moved for 10 s (dg.watchdog 8): rank 1 has ended; the others wait"


def test_the_last_rank_may_take_its_time(watch, monkeypatch):
    waits(watch, monkeypatch, "")
    tell(watch, ended=True)
    assert watch._check() is None


def test_an_exchange_is_a_new_phase(watch):
    before = watch.phase
    watch.clock.moves = (5, 2)
    watch._look()
    assert watch.phase == "the loop, after 5 exchanges," != before


def test_what_it_knew_is_removed_by_the_last_rank(watch, tmp_path):
    tell(watch, beat=1)
    watch._leave()
    assert tmp_path.is_dir()
    tell(watch, ended=True)
    watch._leave()
    assert not tmp_path.exists()


@pytest.mark.slow
def test_a_script_under_distgnn_run(tmp_path):
    partition_graph(random_graph(1), 2, tmp_path / "parts", method="libra")
    (tmp_path / "script.py").write_text(SCRIPT)
    done = distgnn("run", "-n", 2, "--timeout", 6, tmp_path / "script.py", tmp_path / "parts")
    assert done.returncode == 124, done.stderr
    says = (
        r"distgnn: error: nothing moved for [\d.]+ s \(--timeout 6\): rank 1 is in the loop, .* at script\.py:\d+ in "
    )
    assert re.search(says, done.stderr), done.stderr


@pytest.mark.mpi(2)
def test_a_block_is_watched_and_leaves_nothing(comm, tmp_path, monkeypatch):
    monkeypatch.setattr(loop_watch.tempfile, "tempdir", str(tmp_path))
    with watchdog(SimpleNamespace(comm=comm), 60):
        deadline = time.monotonic() + 300  # its own thread writes the file
        while comm.rank == 0 and not any("rank-0" in path.name for path in tmp_path.rglob("*")):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        comm.Barrier()
    comm.Barrier()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.mpi(3)
def test_ranks_that_loaded_among_themselves_load_with_all_others(comm, monkeypatch):
    monkeypatch.setenv(TIMEOUT_VARIABLE, "600")
    monkeypatch.setattr(loop_watch, "_watching", [])
    some = comm.Split(comm.rank < 2)
    if comm.rank < 2:
        loop_watch.watch_to_the_end(some)
    loop_watch.watch_to_the_end(comm)
    assert comm.allgather(comm.rank) == [0, 1, 2]  # nobody is a call ahead
    loop_watch.watch_to_the_end(some)
    (watching,) = loop_watch._watching
    watching.close()
    some.Free()


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), "soon"])
def test_a_limit_is_a_number_of_seconds(seconds):
    with pytest.raises(InputError, match="expected seconds above 0"), watchdog(None, seconds):
        pass


def test_it_is_refused_before_ranks_are_started():
    done = distgnn("run", "-n", 2, "--timeout", "0", __file__)
    assert (done.returncode, done.stderr) == (2, "distgnn: error: timeout is 0.0: expected seconds above 0\n")
