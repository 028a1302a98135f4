"""A rank that waits for ever before the watchdog begins is ended; one that is in time is not."""

import signal
import subprocess
import sys

import pytest

PROGRAM = """
import signal, time
from distgnn.system.jobs.watchdog import start_limit
with start_limit({seconds}, shortest=0.1):
    time.sleep({inside})
raise SystemExit(signal.getitimer(signal.ITIMER_REAL) != (0.0, 0.0))
"""


@pytest.mark.parametrize(
    ("seconds", "inside", "code"),
    [(0.1, 900, -signal.SIGALRM), (900, 0, 0), (0, 0.3, 0)],
    ids=["late", "in time", "off"],
)
def test_a_start_that_takes_too_long_is_ended(seconds, inside, code):
    done = subprocess.run([sys.executable, "-c", PROGRAM.format(seconds=seconds, inside=inside)], timeout=900)
    assert done.returncode == code
