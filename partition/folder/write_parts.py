"""All parts of a folder, some at once: a thread makes and writes one part, then takes the next that nobody has.

Shapes: P parts.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from typing import Any

from distgnn.kernels.runtime.threads import get_num_threads, run

# Each holds a part. One thread's work is half of it waiting for memory and half Python's lock and the disk: more gain
# little.
MOST_WRITERS = 4


def num_writers(num_parts: int, most: int = MOST_WRITERS) -> int:
    """How many parts are made at once, at most `most`."""
    return max(1, min(get_num_threads(), num_parts, most))


def write_parts(
    num_parts: int, write: Callable[[int], dict[str, Any]], step: Callable[[int], None], most: int = MOST_WRITERS
) -> list[dict[str, Any]]:
    """Call `write(part_id)` for every part, on `num_writers` threads; returns what it returned, by part.

    Args: step: `step(done)`, after each part, one call at a time.
    Raises: what `write` raises; no part is begun after that.
    """
    sections: dict[int, dict[str, Any]] = {}
    lock, stopped, waiting = threading.Lock(), threading.Event(), itertools.count()

    def write_some(start: int, stop: int) -> None:
        # next() is atomic under Python's lock: no part is taken twice.
        for part_id in iter(waiting.__next__, None):
            if part_id >= num_parts or stopped.is_set():
                return
            try:
                section = write(part_id)
                with lock:
                    sections[part_id] = section
                    step(len(sections))
            except BaseException:
                # Without this the other threads would go on to the last part before anybody hears of the error.
                stopped.set()
                raise

    run(write_some, range(num_writers(num_parts, most) + 1))
    return [sections[part_id] for part_id in range(num_parts)]
