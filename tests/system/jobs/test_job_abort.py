"""A rank that ends the job: what it wrote last is read first, by a reader that is slow; one that never reads waits."""

import os
import select
import subprocess
import sys
import time
from contextlib import contextmanager

import pytest
from command import without_rank_variables

SCRIPT = """
import sys
from distgnn.system.jobs import own_rank

own_rank.READ_SECONDS = float(sys.argv[1])
print("the last line", file=sys.stderr, flush=True)
exec(sys.argv[2])
own_rank.abort_job(7)
"""


@contextmanager
def aborting(seconds, before=""):
    """A process that has written its last line, and waits `seconds` at most until that was read."""
    command = [sys.executable, "-c", SCRIPT, str(seconds), before]
    pipes = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, env=without_rank_variables(), **pipes) as child:
        try:
            assert select.select([child.stderr], [], [], 60)[0]
            yield child
        finally:
            child.kill()


def test_the_job_does_not_end_before_its_last_line_was_read():
    with aborting(60) as child:
        time.sleep(0.5)
        assert child.poll() is None
        assert os.read(child.stderr.fileno(), 1000) == b"the last line\n"
        assert child.wait(300) == 7


@pytest.mark.parametrize("before", ["", "sys.stdout.close()", "sys.stdout = None"])
def test_nobody_who_reads_and_no_output_do_not_hold_the_end_up(before):
    with aborting(0.1, before) as child:
        assert child.wait(300) == 7
