"""A program in a new process, whose compiled kernels are kept in a folder of its own."""

import os
import subprocess
import sys
from pathlib import Path

ONE_KERNEL = """
import numpy as np
from distgnn import kernels
from distgnn.kernels.runtime.threads import edge_parts
assert edge_parts(np.array([0, 3, 4, 4]), 2).tolist() == [0, 1, 3]
print(kernels.compilation().compiled)
"""


def start(program: str, cache: Path | None, **environment) -> subprocess.Popen:
    environment = os.environ | environment | ({} if cache is None else {"NUMBA_CACHE_DIR": str(cache)})
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen([sys.executable, "-c", program], env=environment, **pipes)


def fresh(program: str, cache: Path | None = None, **environment) -> tuple[str, str]:
    """What it writes to standard output and error; it must end well."""
    process = start(program, cache, **environment)
    said = process.communicate(timeout=900)
    assert process.returncode == 0, said[1]
    return said
