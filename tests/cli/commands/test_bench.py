"""`distgnn bench` and `dg.study`: every number of a study, its tables and figures, and how it goes on after a stop."""

import csv
import json
from pathlib import Path

import pytest

import distgnn as dg
from distgnn.bench import study
from distgnn.bench.contenders import Contender, parse_contenders
from distgnn.bench.result import Measured, StudyResult, rows_of
from distgnn.config import Settings
from distgnn.errors import InputError
from distgnn.train.checkpoint.fingerprint import PARTS

FILES = ["accuracy-2", "scaling", "time"]


def test_names():
    found = {one.name: one for one in parse_contenders(["cd-5", "cd-1/int8", "cd-5/suppressed"])}
    assert list(found) == ["cd-0", "cd-5", "cd-1/int8", "cd-5/suppressed"]
    assert found["cd-1/int8"].settings(Settings()).schedule.wires == ("int8", "int8")
    assert [one.suppressed for one in found.values()] == [False] * 3 + [True]
    careful = Contender.parse("cd-2/int4/backward=int8/late-row-average=0.5/warmup=3").settings(Settings()).schedule
    assert (careful.wires, careful.late_row_average, careful.warmup_epochs) == (("int4", "int8"), 0.5, 3)
    for wrong, says in {
        "cd-2/int3": "unknown word 'int3': choose from float32",
        "cd-2/int4/int8": "int4 and int8 are both given",
        "cd-2/late-row-average=much": "late-row-average=much is not a number",
        "fast": "unknown algorithm 'fast': choose from cd-0, cd-R",
    }.items():
        with pytest.raises(InputError, match=says):
            Contender.parse(wrong)


def turn(name: str, ranks: int, seconds: float) -> dict:
    row = {"name": name, "ranks": ranks, "threads": 1, "update": "owners", "wire": "float32", "exchange_bytes": 8}
    times = {f"epoch_seconds_{kind}": seconds for kind in ("median", "low", "high")}
    phases = {f"{phase}_seconds": seconds / 4 for phase in ("aggregate", "dense", "pack", "wait")}
    return row | times | phases | {"sent_bytes_per_rank": 2000, "sent_bytes_per_epoch": 4000, "messages_per_rank": 6.0}


def prediction(seconds: float) -> dict:
    phases = {phase: seconds / 4 for phase in ("aggregate", "dense", "pack", "wait")}
    ranks = [{"peak_rss_bytes": 5e6}, {"peak_rss_bytes": 7e6}]
    sizes = {"sent_bytes": 300, "messages": 12, "pair_bytes": [[0, 100], [200, 0]]}
    return {"seconds": seconds, "low": 0.9 * seconds, "high": 1.1 * seconds, "phases": phases, "of_rank": ranks} | sizes


def training(*seeds: list[float]) -> dict:
    curves = [
        [{"epoch": 4 * place, "loss": 1.0, "test_metric": value} for place, value in enumerate(one)] for one in seeds
    ]
    return {"curves": curves, "metric": "accuracy", "peak_rss_bytes": 9e6}


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


@pytest.mark.parametrize(
    "words, says",
    [
        (["--network", "here,quick"], "network 'quick'"),
        (["--algorithms", "cd-5/int3"], "unknown word 'int3'"),
        (["--algorithms", ","], "no algorithms"),
        (["--emulate"], "emulate is of other networks than here"),
        (["--tolerance", "2"], "tolerance is 2.0"),
        (["--out", "t.csv"], "t.csv: a study is a folder, with table.csv inside"),
        (["--out", "within"], "partition.json/study/kept: Not a directory"),
        (["again"], "a study takes one cut for each number of ranks"),
        (["other"], "is of another graph: name is communities-50 there, small in "),
    ],
)
def test_bench_refuses(refused, two_parts, tmp_path, words, says):
    if words == ["again"]:
        words = [two_parts]
    if words[-1] == "within":
        words = ["--out", two_parts / "partition.json" / "study"]
    if words == ["other"]:
        dg.partition_graph("communities:nodes=50,feats=8,classes=4", 1, tmp_path / "other", say=lambda line: None)
        words = [tmp_path / "other"]
    refused("bench", two_parts, *words, says=says)


def test_what_is_found_while_measuring(parts, two_parts, tmp_path, monkeypatch, run):
    monkeypatch.setattr(study, "_turns", lambda plan, folder, count: {"graph": hashes | {"arcs": folder}})
    hashes = {"vertices": 40, "arc count": 300} | dict.fromkeys(PARTS, "")
    code, _, err = run("bench", parts, two_parts, "--out", tmp_path / "study", "--quiet")
    assert (
        code == 2 and err == f"distgnn: error: {two_parts} is of another graph than {parts}: its arcs are different\n"
    )
    kept = {path.name for path in (tmp_path / "study" / "kept").iterdir()}
    assert kept == {"study.json", "turns-1.json", "turns-2.json"}

    def without_rights(*given):
        raise InputError("needs root")

    monkeypatch.setattr(study, "_turns", without_rights)
    code, _, err = run("bench", two_parts, "--out", tmp_path / "other", "--quiet")
    assert code == 2 and err.count("\n") == 1 and not (tmp_path / "other").exists()  # nothing was measured


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


def test_a_study_from_python_cuts_once_for_each_number_of_ranks(tmp_path, monkeypatch):
    """Its turns are not measured here, and nothing is trained: the study above and the example in its docstring do."""

    def turns(plan, folder, count):
        same = {"graph": {"vertices": 60, "arc count": 400} | dict.fromkeys(PARTS, ""), "versions": {}, "lines": []}
        return same | {"rows": {"cd-0": turn("cd-0", count, 1.0)}}

    monkeypatch.setenv("DISTGNN_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(study, "_turns", turns)
    monkeypatch.setattr(study, "_trained", lambda *given: training([0.5]))
    data = dg.load_graph("communities:nodes=60,communities=4,feats=8,classes=4,seed=1")
    found = dg.study(data, ranks=[1, 2], algorithms=["cd-0"], hidden_feats=8, epochs=4, rounds=1, quiet=True)
    assert [row["ranks"] for row in found.rows] == [1, 2] and found.rows[0]["final_metric"] == 0.5
    assert len(list((tmp_path / "cache" / "cuts").iterdir())) == 2 and not list((tmp_path / "cache").glob("runs/*"))
    with pytest.raises(InputError, match="algorithms"):
        dg.study(data, algorithm="cd-5")
