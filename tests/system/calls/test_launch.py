"""`dg.launch`: one rank is this process, and what cannot be is said before anything starts."""

import os
import sys
from types import SimpleNamespace

import pytest

from distgnn.errors import InputError
from distgnn.system.calls.launch import launch
from distgnn.system.jobs.own_rank import OURS
from distgnn.system.output import say


def test_a_notebook_shows_no_progress_in_red(monkeypatch, capfd):
    shell = SimpleNamespace(get_ipython=lambda: SimpleNamespace(kernel=None))
    monkeypatch.setitem(sys.modules, "IPython", shell)
    say("here")
    launch(lambda: print("there", file=sys.stderr), ranks=2)
    out, err = capfd.readouterr()
    assert "distgnn: here" in out and "there" in out and not err


def test_one_rank_is_this_process(monkeypatch):
    held = []
    assert launch(lambda: (os.getpid(), held.append(1)), ranks=1, threads=1)[0][0] == os.getpid() and held == [1]
    for name in OURS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PMI_RANK", "0")
    for size in ("", "2"):
        monkeypatch.setenv("PMI_SIZE", size)
        with pytest.raises(InputError, match="is a rank already"):
            launch(print, ranks=1)
    monkeypatch.setenv("PMI_SIZE", "1")  # as of `srun -n 1 python script.py`
    monkeypatch.setenv("DISTGNN_TIMEOUT", "600")
    assert launch(os.getpid, ranks=1) == [os.getpid()] and "PMI_RANK" not in os.environ
    assert os.environ["DISTGNN_TIMEOUT"] == "600"  # the user's
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "none")  # as torchrun sets it, and accelerate
    with pytest.raises(InputError, match="start the script with python, once"):
        launch(print, ranks=1)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ({"ranks": 0}, "expected a whole number"),
        ({"ranks": True}, "expected a whole number"),
        ({"ranks": 1, "threads": 0}, "threads is 0"),
        ({"ranks": 3, "hosts": ["one:2", "two"], "timeout": 1}, "timeout is for ranks of this machine"),
        ({"ranks": 2, "hosts": ["one:2", "two"]}, "the hosts are for 3"),
        ({"hosts": ["one two"]}, "expected NAME or NAME:RANKS"),
    ],
)
def test_what_cannot_be_is_said_before_anything_starts(words, says):
    with pytest.raises(InputError, match=says):
        launch(print, **words)
