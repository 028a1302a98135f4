"""What no process of a job tells of any more: why it was killed, shared memory, machines that do not answer."""

import mmap
import os
import signal
import sys
import tempfile
import time
from pathlib import Path

import pytest

from distgnn.system.jobs import processes, supervise


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="no /proc")
def test_segments_of_nobody_are_removed(tmp_path, monkeypatch):
    monkeypatch.setattr(processes, "SHARED", str(tmp_path))
    monkeypatch.setattr(processes, "LOOK_SECONDS", 0.01)
    old, nobodys, mapped = (tmp_path / f"mpich_shm_{name}" for name in ("1", "2", "3"))
    old.write_bytes(b"x")
    time.sleep(0.02)
    since = time.time()
    time.sleep(0.02)
    for path in (nobodys, mapped):
        path.write_bytes(bytes(mmap.PAGESIZE))
    other = tmp_path / "ucx_5"
    other.touch()
    with open(mapped, "rb") as stream, mmap.mmap(stream.fileno(), 0, prot=mmap.PROT_READ):
        processes.remove_strays(since)
    assert sorted(tmp_path.iterdir()) == sorted([old, mapped, other])


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="no /proc")
def test_segments_of_a_job_that_fails_are_removed(tmp_path, monkeypatch):
    monkeypatch.setattr(processes, "SHARED", str(tmp_path))
    monkeypatch.setattr(processes, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(supervise, "LOOK_SECONDS", 0.02)
    command = ["sh", "-c", f"sleep 0.3; echo x > {tmp_path}/mpich_shm_7; exit 9"]
    assert supervise.supervise(command, dict(os.environ)) == 9
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not os.access("/dev/shm", os.W_OK), reason="no /dev/shm")
def test_files_of_a_user_in_shared_memory_stay(monkeypatch):
    """Parts are often kept in /dev/shm, and every rank maps their arrays."""
    monkeypatch.setattr(supervise, "LOOK_SECONDS", 0.02)
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="distgnn-test-") as folder:
        name = Path(folder).name
        feats, beside = Path(folder) / "feats.npy", Path("/dev/shm") / f"{name}.npy"
        segment = Path("/dev/shm") / f"mpich_shm_{name}"
        map_all = (
            "import mmap, os, sys, time\n"
            "for path in sys.argv[1:]:\n"
            "    open(path, 'wb').write(bytes(mmap.PAGESIZE))\n"
            "kept = [mmap.mmap(os.open(path, os.O_RDWR), 0) for path in sys.argv[1:]]\n"
            "time.sleep(1)\n"
        )
        try:
            command = [sys.executable, "-c", map_all, *map(str, (feats, beside, segment))]
            script = ["sh", "-c", '"$@" & wait; exit 3', "sh", *command]
            assert supervise.supervise(script, dict(os.environ)) == 3
            assert feats.exists() and beside.exists()
            assert not segment.exists()
        finally:
            for path in (beside, segment):
                path.unlink(missing_ok=True)


def test_a_job_whose_other_machines_are_silent_is_over(monkeypatch, capfd):
    monkeypatch.setattr(supervise, "LOOK_SECONDS", 0.05)
    # One "proxy" ends; the other, and mpiexec with it, would wait for 15 minutes.
    command = ["sh", "-c", "sleep 0.5 & sleep 900 & wait"]
    began = time.monotonic()
    assert supervise.supervise(command, dict(os.environ), proxies=True, machines=2) == supervise.LOST
    assert time.monotonic() - began < 300
    assert "ranks have ended on 1 of 2 machines, and nothing is heard of the others" in capfd.readouterr().err


def test_the_kernels_memory_killer_is_told_from_other_signals(monkeypatch):
    before = (1, 5)
    assert "memory behind a mapped file is gone" in processes.why_killed(signal.SIGBUS, before)
    for now, says in (
        ((1, 5), "not by the kernel for memory"),
        ((2, 6), "the kernel ended it for memory"),
        ((1, 6), "of this machine for memory"),
    ):
        monkeypatch.setattr(processes, "memory_kills", lambda now=now: now)
        assert says in processes.why_killed(signal.SIGKILL, before)
    assert "--remat" in processes.why_killed(signal.SIGKILL, before)
