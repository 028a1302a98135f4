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
