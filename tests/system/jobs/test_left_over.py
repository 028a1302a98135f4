"""What no process of a job tells of any more: shared memory of ranks that died early, machines that fell silent."""

import mmap
import os
import time
from pathlib import Path

import pytest

from distgnn.system.jobs import sentinel, supervise


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="no /proc")
def test_segments_of_nobody_are_removed(tmp_path, monkeypatch):
    monkeypatch.setattr(sentinel, "SEGMENTS", str(tmp_path / "mpich_shm_"))
    monkeypatch.setattr(sentinel, "LOOK_SECONDS", 0.01)
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
        sentinel.remove_strays(since)
    assert sorted(tmp_path.iterdir()) == sorted([old, mapped, other])


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="no /proc")
def test_segments_made_after_the_last_note_are_removed(tmp_path, monkeypatch):
    """The launcher notes them at its first looks, then seldom; ranks that start slowly make theirs in between."""
    monkeypatch.setattr(sentinel, "SEGMENTS", str(tmp_path / "mpich_shm_"))
    monkeypatch.setattr(sentinel, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(supervise, "LOOK_SECONDS", 0.02)
    command = ["sh", "-c", f"sleep 0.3; echo x > {tmp_path}/mpich_shm_7; exit 9"]
    assert supervise.supervise(command, dict(os.environ)) == 9
    assert list(tmp_path.iterdir()) == []


def test_a_job_whose_other_machines_are_silent_is_over(monkeypatch, capfd):
    monkeypatch.setattr(supervise, "LOOK_SECONDS", 0.05)
    # One "proxy" ends; the other, and mpiexec with it, would wait for a minute.
    command = ["sh", "-c", "sleep 0.5 & sleep 60 & wait"]
    began = time.monotonic()
    assert supervise.supervise(command, dict(os.environ), proxies=True, machines=2) == supervise.LOST
    assert time.monotonic() - began < 30
    assert "ranks have ended on 1 of 2 machines, and nothing is heard of the others" in capfd.readouterr().err
