"""Ranks that make different calls are told so in one line, and get no number of each other's calls."""

import numpy as np
import pytest
import torch
from command import distgnn
from cut_graphs import dist_graph, random_graph
from mpi4py import MPI

from distgnn.comm.ending.alike import Calls
from distgnn.comm.ending.leaving import watched
from distgnn.errors import RunError
from distgnn.graph.face.row_graph import with_rows
from distgnn.ops import halo_broadcast

SCRIPT = """
import sys
import numpy as np
from mpi4py import MPI
from distgnn.comm import Transport, abort_on_uncaught, sum_over_ranks
from distgnn.comm.ending import leaving
leaving.LOOK_SECONDS, leaving.STILL_SECONDS = 0.1, 0.5
abort_on_uncaught(MPI.COMM_WORLD)
comm = leaving.watched(MPI.COMM_WORLD)
transport = Transport(comm)
rows = np.zeros((2, 3))
for kind, width in (("broadcast", 3), ("reduce", 6), ("reduce", 3)):
    transport.begin(kind, width)  # ranks compare each kind of exchange once
kind, width = ("broadcast", 3) if sys.argv[1] == "kinds" else ("reduce", 6)
if comm.rank == 1:
    transport.wait(transport.receive(rows, 0, transport.begin(kind, width)))
transport.wait(transport.receive(rows, 1 - comm.rank, transport.begin("reduce", 3)))
sum_over_ranks(comm, rows)
"""


@pytest.mark.mpi(2)
def test_a_number_of_rows_asked_for_on_a_line_per_rank(comm):
    rows = with_rows(dist_graph(random_graph(), watched(comm))).x
    mean = rows.mean()
    line = "rank 0 calls Allreduce.* at test_alike.py:.*, rank 1 Allreduce.* at test_alike.py:.*every rank must"
    with pytest.raises(RunError, match=line):
        if comm.rank:
            rows.mean()
        else:
            rows.mean()
    assert rows.mean() == mean


@pytest.mark.mpi(2)
def test_calls_on_a_line_per_rank_in_the_way_of_mpi(comm):
    comm = watched(comm)
    if comm.rank == 0:
        assert comm.bcast(5, root=0) == 5
    else:
        assert comm.bcast(None, root=0) == 5


@pytest.mark.mpi(2)
@pytest.mark.parametrize("call", ["Allreduce", "Bcast"])
def test_arrays_of_other_lengths(comm, call):
    """MPI itself would say "Message truncated", or nothing."""
    comm = watched(comm)
    array = np.ones(3 + comm.rank)
    with pytest.raises(RunError, match=f"rank 0 calls {call} of 3 <f8.*, rank 1 {call} of 4 <f8"):
        comm.Allreduce(MPI.IN_PLACE, array) if call == "Allreduce" else comm.Bcast([array, MPI.DOUBLE], root=0)


@pytest.mark.mpi(2)
def test_exchanges_of_other_widths(comm):
    graph = with_rows(dist_graph(random_graph(), comm))
    width = 4 + comm.rank
    with pytest.raises(RunError, match=r"exchange of rows \(broadcast, 4 wide\), rank 1 .*\(broadcast, 5 wide\)"):
        halo_broadcast(graph.plain, torch.ones(graph.plain.num_owned, width, dtype=torch.float64))


@pytest.mark.slow
@pytest.mark.parametrize("others", ["kinds", "widths"])
def test_exchanges_of_others_that_wait_for_each_other(tmp_path, monkeypatch, others):
    monkeypatch.setenv("DISTGNN_FILES", "all")  # for copies of files ranks load torch
    (tmp_path / "script.py").write_text(SCRIPT)
    done = distgnn("run", "-n", 2, tmp_path / "script.py", others)
    odd = "broadcast, 3" if others == "kinds" else "reduce, 6"
    said = f"rank 0 calls an exchange of rows (reduce, 3 wide), rank 1 an exchange of rows ({odd} wide)"
    assert done.returncode == 1 and done.stderr.count(said) == 1, done.stderr


def test_the_first_call_that_differs_is_said_of_those_that_both_remember():
    ours, theirs = Calls(), Calls()
    for number in range(100):
        ours.begin(f"call {number}")
        theirs.begin(f"call {number}")
        theirs.begin("a sum in the background", waits=False)
    assert not ours.other_than(theirs.recent())
    ours.begin("a sum")
    assert not ours.other_than(theirs.recent())  # the other has not come so far
    theirs.begin("an exchange")
    assert ours.other_than(theirs.recent()) == ["a sum", "an exchange"]
