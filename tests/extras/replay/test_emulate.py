"""An emulated network: bytes cross its links, whatever happens it is removed, without rights it is refused."""

import json
import os
import shutil
import signal
import subprocess
import sys

import numpy as np
import pytest

from distgnn.errors import InputError, RunError
from distgnn.extras.replay import emulate
from distgnn.extras.replay.emulate import PREFIX, check_emulation, emulated, remove_leftovers
from distgnn.extras.replay.network import parse_network
from distgnn.system.calls.launch import call_on_ranks

NETWORK = parse_network("1gbit")
needs_root = pytest.mark.skipif(
    os.geteuid() != 0 or not all(map(shutil.which, emulate.PROGRAMS)),
    reason="network namespaces need root and iproute2",
)


def namespaces() -> str:
    return emulate.run("ip", "netns", "list")


@needs_root
@pytest.mark.slow
def test_bytes_cross_links_that_are_removed(capfd):
    def exchanged(num_bytes: int) -> tuple[str, float]:
        """The host's name, and what a rank got."""
        import socket

        from mpi4py import MPI

        comm = MPI.COMM_WORLD
        rows, got = np.full(num_bytes, comm.rank + 1, np.uint8), np.empty(num_bytes, np.uint8)
        comm.Sendrecv(rows, 1 - comm.rank, recvbuf=got, source=1 - comm.rank)
        return socket.gethostname(), float(got.mean())

    def killed() -> None:
        from mpi4py import MPI

        if MPI.COMM_WORLD.rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        MPI.COMM_WORLD.Barrier()

    before = dict(os.environ)
    with emulated(NETWORK, 2) as nodes:
        found = call_on_ranks(exchanged, (1_000_000,), None, threads=1, hosts=nodes.hosts)
        assert found == [("node-1", 2.0), ("node-2", 1.0)]
        assert 2_000_000 < nodes.crossed_bytes() < 4_000_000
        with pytest.raises(RunError):
            call_on_ranks(killed, (), None, threads=1, hosts=nodes.hosts)
        assert nodes.name in namespaces()
    assert nodes.name not in namespaces() and dict(os.environ) == before


@needs_root
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_signal_leaves_nothing(number):
    """What SIGKILL leaves, the next one removes."""
    lines = ["import signal, time", "signal.signal(signal.SIGINT, signal.default_int_handler)"]  # where it is ignored
    lines += ["from distgnn.extras.replay import emulate, network"]
    lines += ["with emulate.emulated(network.parse_network('1gbit'), 2) as nodes:"]
    lines += ["    print(nodes.name, flush=True)", "    time.sleep(60)"]
    words = [sys.executable, "-c", "\n".join(lines)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        name = process.stdout.readline().strip()
        assert name.startswith(f"{PREFIX}-{process.pid}-") and name in namespaces()
        remove_leftovers()
        assert name in namespaces()  # its maker lives
        process.send_signal(number)
        process.wait(20)
    if number == signal.SIGKILL:
        assert name in namespaces()
        remove_leftovers()
    assert name not in namespaces()


def test_without_rights_it_is_one_line(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(shutil, "which", lambda name: name)
    with pytest.raises(InputError, match="needs root"):
        check_emulation(2, NETWORK)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(InputError, match="ip, tc, unshare missing") as caught:
        check_emulation(2, NETWORK)
    assert "\n" not in str(caught.value)


@needs_root
@pytest.mark.slow
def test_a_study_predicts_and_emulates(two_parts, tmp_path, run):
    """What is sent is what is sent here; a link takes its time for it."""
    words = ["bench", two_parts, "--network", "here,1mbit", "--emulate", "--algorithms", "cd-2", "--rounds", 1]
    code, shown, err = run(*words, "--hidden-feats", 8, "--threads", 1, "--out", tmp_path / "study")
    assert code == 0, err
    found = json.loads((tmp_path / "study" / "study.json").read_text())["rows"]
    rows = {(row["network"], row["name"]): row for row in found}
    for name in ("cd-0", "cd-2"):
        here, there = rows["here", name], rows["1mbit", name]
        assert (here["kind"], there["kind"]) == ("measured", "predicted") and "emulated_seconds" not in here
        assert there["messages_per_rank"] == here["messages_per_rank"]
        assert there["sent_bytes_per_rank"] == here["sent_bytes_per_rank"]  # of cd-2 means over unequal bins
        assert there["emulated_difference"] == there["epoch_seconds_median"] / there["emulated_seconds"] - 1
    exact, late = rows["1mbit", "cd-0"], rows["1mbit", "cd-2"]
    assert late["sent_bytes_per_rank"] == exact["sent_bytes_per_rank"] / 2
    assert exact["epoch_seconds_median"] > exact["max_rank_sent_bytes"] * 8 / 1e6
    assert "predicted differs by" in shown and str(os.getpid()) not in namespaces()
