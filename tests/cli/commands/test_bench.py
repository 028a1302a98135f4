"""`distgnn bench`: rows for every algorithm, the exact run and the paper's form; several folders show scaling."""

import json
import subprocess
import sys

import pytest
import typer
from command import distgnn

from distgnn.bench.contenders import parse_contenders
from distgnn.bench.figures import with_scaling
from distgnn.cli.commands import bench
from distgnn.errors import InputError

NEEDED = (
    "algorithm update wire ranks threads epoch_seconds_median epoch_seconds_iqr aggregate_seconds dense_seconds "
    "pack_seconds wait_seconds sent_bytes_per_epoch max_rank_sent_bytes peak_rss_bytes final_metric speedup_vs_exact "
    "speedup_vs_paper"
).split()


def test_names():
    found = parse_contenders("cd-5, 0c,cd-2/copies,cd-1/int8")
    assert [one.name for one in found] == ["cd-0", "cd-5", "0c", "cd-2/copies", "cd-1/int8", "paper"]
    assert [one.update for one in found] == ["owners", "owners", "copies", "copies", "owners", "copies"]
    assert [one.papers_form for one in found] == [False, False, False, False, False, True]
    assert [one.wire for one in found][4] == "int8"
    careful = parse_contenders("cd-2/int4/backward=int8/late-row-average=0.5/warmup=3,cd-2/paper-rule,cd-5/suppressed")
    schedule = careful[1].schedule
    assert (careful[1].wire, schedule.late_row_average) == ("int4/int8", 0.5)
    assert schedule.warmup_epochs == 3
    assert (careful[2].update, careful[2].schedule.remote_rule) == ("copies", "paper")
    assert [one.suppressed for one in careful] == [False, False, False, True, False]
    for wrong, says in {
        "cd-2/int3": "unknown word 'int3': choose from owners, copies, float32",
        "cd-2/int4/int8": "int4 and int8 are both given",
        "cd-2/late-row-average=much": "late-row-average=much is not a number",
        "cd-2/feedback": "unknown word 'feedback'",
        "cd-2/owners/paper-rule": "add --update copies",
        "0c/int8": "0c sends nothing",
        "": "no algorithms",
        "fast": "unknown algorithm",
        "0c/owners": "needs update on copies",
    }.items():
        with pytest.raises(InputError, match=says):
            parse_contenders(wrong)


def test_scaling_strong_and_weak():
    def row(ranks, cores, num_arcs, seconds):
        return {"name": "cd-0", "ranks": ranks, "cores": cores, "num_arcs": num_arcs, "epoch_seconds_median": seconds}

    strong = with_scaling([row(1, 2.0, 100, 8.0), row(2, 4.0, 100, 5.0), row(8, 4.0, 100, 4.0)])
    assert [one["speedup_vs_first"] for one in strong] == [1.0, 1.6, 2.0]
    assert [one["efficiency"] for one in strong] == [1.0, 0.8, 1.0]  # eight ranks on four cores are four cores
    weak = with_scaling([row(1, 1.0, 100, 2.0), row(2, 2.0, 200, 2.5)])
    assert weak[1]["speedup_vs_first"] == 1.6
    assert weak[1]["efficiency"] == 0.8


@pytest.mark.slow
def test_scaling_over_two_folders_with_accuracy(parts, two_parts, tmp_path):
    out = tmp_path / "bench.json"
    words = ["--algorithms", "cd-2,0c,cd-0/suppressed", "--rounds", 1, "--hidden-feats", 8, "--accuracy", "--epochs", 8]
    words += ["--figures", tmp_path / "figures"]
    done = distgnn("bench", parts, two_parts, *words, "--eval-every", 4, "--out", out)
    assert done.returncode == 0, done.stderr
    report = json.loads(out.read_text())
    assert {"machine", "graph", "rows"} <= report.keys()
    rows = report["rows"]
    assert [row["ranks"] for row in rows] == [1] * 5 + [2] * 5
    for row in rows:
        assert set(NEEDED) <= row.keys()
        assert row["wait_seconds_min"] <= row["wait_seconds"] <= row["wait_seconds_max"]
        assert row["final_metric"] is None if "suppressed" in row["name"] else 0 <= row["final_metric"] <= 1
        assert (row["num_arcs"], row["replication_factor"] > 1) == (rows[0]["num_arcs"], row["ranks"] == 2)
        assert 0 < row["efficiency"] <= row["speedup_vs_first"]
    assert "Scaling, against the first folder" in done.stdout
    two = {row["name"]: row for row in rows if row["ranks"] == 2}
    assert two["cd-0"]["speedup_vs_exact"] == two["paper"]["speedup_vs_paper"] == 1
    assert two["0c"]["sent_bytes_per_epoch"] == two["cd-0/suppressed"]["sent_bytes_per_epoch"] == 0
    assert len(two["cd-0"]["exchange_waits"]) == 8
    figures = sorted(path.name for path in (tmp_path / "figures").iterdir())
    assert figures == [f"{name}.{kind}" for name in ("accuracy", "scaling", "time") for kind in ("png", "svg")]
    sent = [two[name]["sent_bytes_per_epoch"] for name in ("0c", "cd-2", "cd-0", "paper")]
    assert sent == sorted(set(sent))
    points = [(point["epoch"], point["seconds"]) for point in two["cd-0"]["curve"]]
    assert [epoch for epoch, _ in points] == [1, 2, 5, 8]  # from the first epoch on
    assert 0 < points[0][1] < points[1][1] < points[2][1] < points[3][1]
    assert two["cd-0"]["curve"][0]["loss"] == pytest.approx(two["paper"]["curve"][0]["loss"], rel=1e-3)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bench.json", "figures", "graph", "parts", "parts-2"]


PROGRAM = """
import sys
from distgnn import kernels
from distgnn.bench import training
from distgnn.bench.contenders import parse_contenders
from distgnn.config import ModelConfig, TrainConfig

compiled, train = [], training.Runner.train

def counted(self, epochs):
    before = kernels.compilation()
    train(self, epochs)
    now = kernels.compilation()
    compiled.append((id(self), now.compiled + now.loaded - before.compiled - before.loaded))
    kept.append(self)  # ids stay different

kept, training.Runner.train = [], counted
contenders = parse_contenders("cd-0,cd-2")
rows = training.run(sys.argv[1], contenders, ModelConfig(hidden_feats=8), TrainConfig(epochs=8), 1, True)
measured = list({id(one): 0 for one in kept})[len(contenders):]
assert len(measured) == len(contenders) and all(len(row["curve"]) for row in rows)
assert sum(count for _, count in compiled)
print(sum(count for one, count in compiled if one in measured))
"""


@pytest.mark.slow
def test_no_contender_pays_for_kernels_in_a_curve_of_accuracy(parts):
    done = subprocess.run([sys.executable, "-c", PROGRAM, str(parts)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "0"


def test_the_job_of_a_folder_imports_nothing_of_the_working_directory(tmp_path, monkeypatch):
    seen = []
    ended = subprocess.CompletedProcess([], returncode=3)
    monkeypatch.setattr(subprocess, "run", lambda command, **how: seen.append(how) or ended)
    monkeypatch.setattr(sys, "path", ["/elsewhere", *sys.path])  # as of the program `distgnn`
    with pytest.raises(typer.Exit):
        bench._one_job_per_folder(["a", "b"], ["bench", "a", "b"], str(tmp_path / "out.json"))
    assert seen[0]["env"]["PYTHONSAFEPATH"] == "1"
