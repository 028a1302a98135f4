"""Every number of a study's rows, and its tables and figures."""

import csv
import json

import pytest
from studies import training, turn

from distgnn.bench.result import Measured, StudyResult, rows_of


def prediction(seconds: float) -> dict:
    phases = {phase: seconds / 4 for phase in ("aggregate", "dense", "pack", "wait")}
    ranks = [{"peak_rss_bytes": 5e6}, {"peak_rss_bytes": 7e6}]
    sizes = {"sent_bytes": 300, "messages": 12, "pair_bytes": [[0, 100], [200, 0]]}
    return {"seconds": seconds, "low": 0.9 * seconds, "high": 1.1 * seconds, "phases": phases, "of_rank": ranks} | sizes


def small_study() -> StudyResult:
    """Two algorithms on 2 and 4 ranks, here and over a network; cd-5 with two seeds that are late at the target."""
    measured = []
    for ranks in (2, 4):
        one = Measured(ranks, {"rows": {"cd-0": turn("cd-0", ranks, 4 / ranks), "cd-5": turn("cd-5", ranks, 1.0)}})
        one.predicted = {"cd-0": {"1gbit": prediction(3.0)}, "cd-5": {"1gbit": prediction(1.5)}}
        one.emulated = {"1gbit": {"rows": {"cd-0": turn("cd-0", ranks, 4.0), "cd-5": turn("cd-5", ranks, 1.5)}}}
        one.trained = {"cd-0": training([0.5, 0.8, 0.9]), "cd-5": training([0.1, 0.5, 0.90], [0.3, 0.5, 0.88])}
        measured.append(one)
    about = {"graph": "g_1", "tolerance": 0.02, "lines": ["caution: once"]}
    about["settings"] = {"model": {"name": "sage", "num_layers": 3, "hidden_feats": 16}}
    return StudyResult(rows_of(measured, ["here", "1gbit"], 0.02), about)


def test_every_number_of_a_row():
    rows = {(row["ranks"], row["network"], row["name"]): row for row in small_study().rows}
    assert list(rows)[:3] == [(2, "here", "cd-0"), (2, "here", "cd-5"), (2, "1gbit", "cd-0")]
    assert [rows[ranks, "here", "cd-5"]["speedup_vs_exact"] for ranks in (2, 4)] == [2.0, 1.0]
    assert rows[4, "here", "cd-0"]["speedup_vs_first"] == 2.0
    late = rows[2, "1gbit", "cd-5"]
    assert (late["speedup_vs_exact"], late["sent_bytes_per_rank"], late["messages_per_rank"]) == (2.0, 150, 6)
    assert (late["epoch_seconds_low"], late["max_rank_sent_bytes"], late["kind"]) == (1.35, 200, "predicted")
    assert (late["final_metric"], late["final_metric_std"]) == (pytest.approx(0.89), pytest.approx(0.0141, abs=1e-4))
    assert (late["target_metric"], late["epochs_to_target"]) == (pytest.approx(0.88), 9)  # the mean of both is there
    assert (late["emulated_seconds"], rows[2, "1gbit", "cd-0"]["emulated_difference"]) == (1.5, -0.25)
    assert late["seconds_to_target"] == 9 * 1.5 and late["peak_rss_bytes"] == 9e6
    assert [point["seconds"] for point in late["curve"]] == [1.5, 7.5, 13.5]
    never = Measured(2, {"rows": {"cd-0": turn("cd-0", 2, 1.0), "0c": turn("0c", 2, 1.0)}})
    never.trained = {"cd-0": training([0.9]), "0c": training([0.5])}
    row = rows_of([never], ["here"], 0.02)[1]
    assert row["epochs_to_target"] is row["seconds_to_target"] is row["final_metric_std"] is None


def test_tables_and_figures(tmp_path):
    result = small_study()
    result.save(tmp_path)
    found = list(csv.DictReader((tmp_path / "table.csv").read_text().splitlines()))
    assert len(found) == 8 and found[1]["epoch_seconds_median"] == "1.0" and "curve" not in found[1]
    text = (tmp_path / "table.md").read_text()
    assert text.count("caution: once") == 1 and "× cd-0: how many times as fast as exact training" in text
    assert "predicted differs by 12 % in the median, -25 % at worst" in text
    assert "89.00 % ± 1.41" in text and "| 4 | 1gbit | cd-5 |" in text
    assert json.loads((tmp_path / "study.json").read_text())["rows"][0]["curve"]
    figures = {path.stem for path in tmp_path.glob("*.png")}
    assert figures == {path.stem for path in tmp_path.glob("*.svg")} == {"time", "scaling", "accuracy-2", "accuracy-4"}
    ranks = [tick.get_text() for tick in result.plot()["scaling"].axes[0].get_xticklabels()]
    assert all(float(tick).is_integer() for tick in ranks)
    frame = result.to_pandas()
    assert list(frame["name"]) == ["cd-0", "cd-5"] * 4 and "curve" not in frame
