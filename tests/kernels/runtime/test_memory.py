"""What is freed goes back to the system: large blocks at once, small ones when asked for."""

import os
import platform
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from distgnn.kernels.runtime import memory
from distgnn.kernels.runtime.memory import MPOL_DEFAULT, MPOL_INTERLEAVE, keep_pages_near, page_policy, spread_pages

from .fresh import fresh

PROGRAM = """
import sys, torch
from distgnn.kernels import give_back_freed_memory, return_large_blocks
from distgnn.system.units import resident
if not return_large_blocks():
    sys.exit("malloc took no settings")
def taken():
    return resident().total - before
before = resident().total
torch.ones(6 << 20).sum()  # 24 MiB: from now on glibc by itself keeps up to that
rows = [torch.ones(9 << 17) for _ in range(20)]  # of 4.5 MiB
held = torch.ones(1 << 10)
rows = rows[:1]
large = taken()
rows = [torch.ones(1 << 17) for _ in range(200)]
del rows[1:-1]
small = taken()
give_back_freed_memory()
print(large >> 20, small >> 20, taken() >> 20)
"""


@pytest.mark.slow
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="sets glibc's malloc")
def test_large_blocks_go_back_when_they_are_freed():
    large, small, after = map(int, fresh(PROGRAM)[0].split())
    assert large < 30 and small > 60 and after < 30  # MiB


def in_a_thread(call):
    """A policy belongs to a thread: that of the tests stays."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(call).result()


@pytest.mark.skipif(
    (in_a_thread(page_policy) or (None,))[0] != MPOL_DEFAULT,
    reason="the system does not say where pages lie, or numactl",
)
def test_pages_lie_on_the_nodes_that_were_named():
    def spread():
        done = spread_pages([0])
        return done, page_policy(), in_a_thread(page_policy), spread_pages([0]), keep_pages_near(), page_policy()

    done, mine, of_its_thread, again, near, after = in_a_thread(spread)
    assert (done, mine, of_its_thread) == (True, (MPOL_INTERLEAVE, [0]), mine)
    assert not again  # what was chosen before stays
    assert near and after[0] == MPOL_DEFAULT
    assert in_a_thread(lambda: (spread_pages([1000]), page_policy()[0])) == (False, MPOL_DEFAULT)  # no such node
    assert page_policy()[0] == MPOL_DEFAULT


def test_a_system_that_refuses_is_no_fault(monkeypatch):
    monkeypatch.setattr(memory, "POLICY_CALLS", {platform.machine(): (-1, -1)})  # ENOSYS
    assert (spread_pages([0]), page_policy()) == (False, None)
    monkeypatch.setattr(memory, "POLICY_CALLS", {})
    assert (spread_pages([0]), page_policy()) == (False, None)


LIMITED = """
import resource, sys, numba, numpy as np
from distgnn.kernels.runtime.jit import kernel
@kernel
def twice(rows, out):
    out[:] = 2 * rows
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + int(sys.argv[1]), -1))
twice(np.ones(3), np.ones(3))
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the limit is Linux's")
def test_compiling_without_room_is_an_error_at_once(tmp_path):
    (tmp_path / "limited.py").write_text(LIMITED)
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, tmp_path / "limited.py", str(200 << 20)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=900)
    assert "MemoryError: compiling a kernel needs 256 MiB of addresses" in done.stderr
