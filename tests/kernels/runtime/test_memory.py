"""Freed memory is kept, and given back when asked for."""

import os
import platform
import subprocess
import sys

import pytest

PROGRAM = """
import resource, sys, numpy as np
from distgnn.kernels import give_back_freed_memory, keep_freed_memory
def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    np.empty(1 << 26, np.uint8)[::4096] = 1
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
if sys.argv[1] == "keep" and not keep_freed_memory():
    sys.exit("malloc took no settings")
faults()
again = faults()
give_back_freed_memory()
print(again, faults())
"""


def page_faults(mode: str) -> tuple[int, int]:
    """Of a second array of 64 MiB, and of a third after memory was given back."""
    environment = os.environ | {"NUMPY_MADVISE_HUGEPAGE": "0"}
    command = [sys.executable, "-c", PROGRAM, mode]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    again, after = map(int, done.stdout.split())
    return again, after


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="sets glibc's malloc")
def test_the_second_array_costs_no_page_faults():
    plain, _ = page_faults("plain")
    kept, given_back = page_faults("keep")
    assert kept < plain / 8  # without the function the two are the same
    assert given_back > plain / 2


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


@pytest.mark.skipif(sys.platform != "linux", reason="the limit is Linux's")
def test_compiling_without_room_is_an_error_at_once(tmp_path):
    (tmp_path / "limited.py").write_text(LIMITED)
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, tmp_path / "limited.py", str(200 << 20)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60)
    assert "MemoryError: compiling a kernel needs 256 MiB of addresses" in done.stderr
