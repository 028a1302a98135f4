"""How many threads a process may use."""

import os

from distgnn.errors import InputError


def num_threads() -> int:
    """Threads of this process: DISTGNN_NUM_THREADS, else OMP_NUM_THREADS, else the cores it may run on.

    Raises: InputError where the variable is not a positive number.
    """
    for name in ("DISTGNN_NUM_THREADS", "OMP_NUM_THREADS"):
        text = os.environ.get(name)
        if text:
            if not text.isdigit() or int(text) < 1:
                raise InputError(f"{name}={text}: expected a positive number of threads")
            return int(text)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
