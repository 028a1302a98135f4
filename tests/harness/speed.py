"""How slow this machine is now, so that a time limit means the same work on a slow or loaded one."""

import time

REFERENCE_SECONDS = 0.1  # of the loop below on the quiet machine that the limits were chosen on
ADDITIONS = 2_000_000
MOST = 30.0
KEEP_SECONDS = 20.0

_measured: tuple[float, float] | None = None  # when, and the result


def slowness() -> float:
    """How many times longer than on the reference machine a loop takes here, between 1 and 30; measured at most every
    20 s. A machine that other programs load is slow, too: the loop is timed by the clock on the wall."""
    global _measured
    now = time.monotonic()
    if _measured is None or now - _measured[0] > KEEP_SECONDS:
        _measured = now, min(max(_loop_seconds() / REFERENCE_SECONDS, 1.0), MOST)
    return _measured[1]


def _loop_seconds() -> float:
    began = time.perf_counter()
    total = 0
    for number in range(ADDITIONS):
        total += number
    return time.perf_counter() - began
