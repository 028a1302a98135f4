"""Turns on real ranks: what a study measures, and how it goes on after a stop; how fast ranks are."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from distgnn.bench import study
from distgnn.bench.turns import measure_speeds

FILES = ["accuracy-2", "scaling", "time"]


@pytest.mark.slow
def test_a_study_that_was_stopped_goes_on(parts, two_parts, tmp_path, monkeypatch, run, ran):
    jobs, out = [], tmp_path / "study"
    real = study.fit, study.call_on_ranks
    words = [parts, two_parts, "--algorithms", "cd-0/suppressed", "--rounds", 1, "--hidden-feats", 8]
    words += ["--runs", 2, "--num-layers", 2]
    words += ["--accuracy", "--epochs", 8, "--eval-every", 4, "--out", out]

    def stopped(*args, **how):
        jobs.append("fit")
        if len(jobs) == 4:
            raise KeyboardInterrupt
        return real[0](*args, **how)

    monkeypatch.setattr(
        "matplotlib.figure.Figure.savefig", lambda figure, path, **how: Path(path).touch()
    )  # drawn above
    monkeypatch.setattr(study, "fit", stopped)
    monkeypatch.setattr(study, "call_on_ranks", lambda *args, **how: jobs.append("turns") or real[1](*args, **how))
    code, _, err = run("bench", *words)
    assert code == 130, err
    assert jobs == ["turns", "turns", "fit", "fit"] and not (out / "table.csv").exists()
    shown = ran("bench", *words)
    assert jobs[4:] == ["fit"]  # what was finished is not measured again
    found = json.loads((out / "study.json").read_text())
    rows = {(row["ranks"], row["name"]): row for row in found["rows"]}
    assert list(rows) == [(count, name) for count in (1, 2) for name in ("cd-0", "cd-0/suppressed")]
    assert found["versions"]["torch"] and found["machine"]["cpu"] and found["command"][0] == "bench"
    for row in rows.values():
        assert row["epoch_seconds_low"] <= row["epoch_seconds_median"] <= row["epoch_seconds_high"]
        assert row["wait_seconds_min"] <= row["wait_seconds"] <= row["wait_seconds_max"]
        assert (row["final_metric"] is None) == ("suppressed" in row["name"])
    assert rows[2, "cd-0/suppressed"]["sent_bytes_per_rank"] == 0
    assert rows[2, "cd-0"]["messages_per_rank"] == 4  # of layer 2, as the first one's rows are kept
    assert [point["epoch"] for point in rows[2, "cd-0"]["curve"]] == [4, 8] and rows[2, "cd-0"]["seeds"] == 2
    assert rows[1, "cd-0"]["curve"][-1]["loss"] == pytest.approx(rows[2, "cd-0"]["curve"][-1]["loss"], rel=1e-3)
    assert "how many times as fast as exact training" in shown
    assert sorted(path.stem for path in out.glob("*.png")) == ["accuracy-1", *FILES]
    assert not list((out / "kept").glob("run-*"))
    code, _, err = run("bench", *words, "--epochs", 9)
    assert code == 2 and err.count("\n") == 1 and "has a study with another training: name another folder" in err


def test_a_speed_is_relative_to_the_fastest(monkeypatch):
    """On two ranks alike, of which the other has done a quarter of the rounds."""
    ranks = SimpleNamespace(Barrier=lambda: None, allgather=lambda one: [one, (*one[:2], one[2] / 4)])
    first, second = measure_speeds(ranks, 0.01)
    assert (first["rank"], first["capacity"], second["rank"], second["capacity"]) == (0, 1.0, 1, 0.25)
    assert first["rounds_per_second"] > 0
