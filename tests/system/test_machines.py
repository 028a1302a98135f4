"""Machines that do not answer are left out, and which ranks the others get."""

import stat
import time

from distgnn.system import machines
from distgnn.system.machines import first_ranks, ranks_on

ROOMS = [("a", 2), ("b", 1), ("c", 3)]
MPIEXEC = """#!/bin/sh
# Hydra's options: -n 1 -f HOSTS PROGRAM …
[ "$1" = --version ] && { echo HYDRA; exit 0; }
grep -q a: $4 && exit 0
grep -q b: $4 && exit 3
sleep 900
"""


def test_hosts_that_fail_or_are_silent_do_not_answer(tmp_path, monkeypatch):
    program = tmp_path / "mpiexec"
    program.write_text(MPIEXEC)
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("DISTGNN_MPIEXEC", str(program))
    began = time.monotonic()
    assert machines.answering(ROOMS, seconds=5.0) == [("a", 2)]
    assert time.monotonic() - began < 300  # 900 if it waited for the one that does not answer


def test_ranks_fill_the_first_hosts():
    assert first_ranks(ROOMS, 6) == ROOMS
    assert first_ranks(ROOMS, 4) == [("a", 2), ("b", 1), ("c", 1)]
    assert first_ranks(ROOMS, 2) == [("a", 2)]
    assert ranks_on(ROOMS) == {"a": [0, 1], "b": [2], "c": [3, 4, 5]}
