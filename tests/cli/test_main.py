"""Errors of the command line, of ours and of users who press Ctrl-C: one line each, and its exit code."""

import pytest
import typer

from distgnn import partition


@pytest.mark.parametrize("stop", [KeyboardInterrupt(), typer.Exit(130)], ids=["here", "on launched ranks"])
def test_an_interrupted_command_says_so(run, monkeypatch, tmp_path, stop):
    def describe(*args):
        raise stop

    monkeypatch.setattr(partition, "describe", describe)
    code, out, err = run("info", tmp_path)
    assert (code, out, err.strip()) == (130, "", "distgnn: error: interrupted")


@pytest.mark.parametrize(
    "words, says",
    [
        (["--bogus"], "No such option: --bogus"),
        (["train", "parts", "--residual", "linear"], "give --set residual=VALUE"),
        (["train", "parts", "--input-dropout=0.1"], "give --set input_dropout=VALUE"),
        (["info", "parts", "--residual", "linear"], "No such option: --residual"),
        (["parttion"], "No such command"),
        (["train"], "Missing argument 'parts'"),
        (["partition", "cora", "--out", "x"], "Missing option '--parts'"),
        (["partition", "cora", "--parts", "two", "--out", "x"], "valid integer"),
        (["download", "ogbn-nothing"], "ogbn-nothing"),
    ],
)
def test_the_command_line_itself(refused, words, says):
    refused(*words, says=says)


def test_our_own_failure_has_a_traceback_the_rank_and_the_phase(run, parts, tmp_path, monkeypatch):
    from distgnn.train.optimizers import Adam

    monkeypatch.setattr(Adam, "step", lambda self: 1 / 0)
    code, _, err = run("train", parts, "--hidden-feats", 8, "--epochs", 1, "--quiet", "--run-dir", tmp_path / "run")
    assert code == 1
    assert "Traceback" in err
    assert "internal error on rank 0 in epoch 0, optimiser: ZeroDivisionError" in err
    log = (tmp_path / "run" / "logs" / "rank-0.log").read_text()
    assert "ended in epoch 0, optimiser: ZeroDivisionError" in log and "Traceback" in log
