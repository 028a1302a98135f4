"""Public functions and classes have an example each, and all of them run."""

import subprocess
import sys

import pytest
import run_examples


def test_every_public_name_has_an_example():
    assert run_examples.without_example() == []


@pytest.mark.slow
def test_examples_print_what_they_show():
    """In a process of their own: `dg.load` starts MPI, and sets threads and the end of the process."""
    command = [sys.executable, run_examples.__file__]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(done.stdout.split()[0]) >= len(run_examples.public_names())
