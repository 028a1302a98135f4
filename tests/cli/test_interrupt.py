"""Ctrl-C is one line and exit code 130, whoever catches it first."""

import os
import signal

import pytest
import typer

from distgnn import partition
from distgnn.train.run.interrupt import Interrupts


@pytest.mark.parametrize("stop", [KeyboardInterrupt(), typer.Exit(130)], ids=["here", "on launched ranks"])
def test_an_interrupted_command_says_so(run, monkeypatch, tmp_path, stop):
    def describe(*args):
        raise stop

    monkeypatch.setattr(partition, "describe", describe)
    code, out, err = run("info", tmp_path)
    assert (code, out, err.strip()) == (130, "", "distgnn: error: interrupted")


def test_what_asks_again_ends_no_run_that_has_stopped():
    before = signal.signal(signal.SIGUSR1, signal.SIG_DFL)
    try:
        with Interrupts() as interrupts:
            os.kill(os.getpid(), signal.SIGUSR1)
        assert (interrupts.received, signal.getsignal(signal.SIGUSR1)) == (signal.SIGUSR1, signal.SIG_IGN)
    finally:
        signal.signal(signal.SIGUSR1, before)
