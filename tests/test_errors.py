"""The errors a user can cause: what they end a program with, and how they look where they are shown."""

import pickle
import signal

import pytest

from distgnn.errors import InputError, RunError, RunStopped, exit_code, on_all_ranks


@pytest.mark.parametrize(
    ("error", "code"),
    [(InputError("wrong"), 2), (RunStopped(signal.SIGTERM, 3, "run"), 143), (ValueError("a bug"), 1)],
)
def test_a_program_ends_with_their_code(error, code):
    assert exit_code(error) == code


@pytest.mark.parametrize(
    ("number", "launched", "says"),
    [(2, "", "SIGINT"), (10, "", "SIGUSR1"), (10, "1", "the launcher's signal"), (12, "", "signal 12")],
)
def test_a_stop_says_which_signal_and_goes_between_processes_whole(number, launched, says, monkeypatch):
    monkeypatch.setenv("DISTGNN_LAUNCHED", launched)
    error = on_all_ranks(RunStopped(number, 7, "run"))
    error.said = True
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == str(error) and str(error).startswith(f"stopped by {says} after 7 epochs; run has a checkpoint")
    assert (again.signal, again.epochs_done, again.run_dir, again.agreed, again.said) == (number, 7, "run", True, True)


def test_a_notebook_shows_one_line():
    assert RunError("no")._render_traceback_() == ["RunError: no"]
