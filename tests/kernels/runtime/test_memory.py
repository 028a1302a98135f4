"""What is freed goes back to the system: large blocks at once, small ones when asked for."""

import os
import platform
import subprocess
import sys

import pytest

PROGRAM = """
import sys, torch
from distgnn.kernels import give_back_freed_memory, return_large_blocks
from distgnn.system.sizes import resident
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
    done = subprocess.run([sys.executable, "-c", PROGRAM], check=True, capture_output=True, text=True)
    large, small, after = map(int, done.stdout.split())
    assert large < 30 and small > 60 and after < 30  # MiB


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
