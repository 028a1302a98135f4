"""Freed memory is kept."""

import subprocess
import sys

PROGRAM = """
import resource, numpy as np
from distgnn.kernels import keep_freed_memory
if keep_freed_memory():
    def faults():
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        np.empty(1 << 26, np.uint8)[::4096] = 1
        return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
    first, second = faults(), faults()
    assert second < first / 4 + 20, (first, second)
"""


def test_the_second_array_costs_no_page_faults():
    subprocess.run([sys.executable, "-c", PROGRAM], check=True)
