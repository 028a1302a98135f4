"""`distgnn bench --time-to-accuracy`: points of a curve, medians over seeds, and a race of small contestants."""

import json

import pytest
import typer
from command import distgnn

from distgnn.bench.steps.contestants import Contestant, End, curve
from distgnn.bench.steps.time_to_accuracy import medians, reached
from distgnn.cli.main import make_app
from distgnn.errors import InputError


def record(epoch: int, valid: float | None, smoothed: float | None = None) -> dict:
    """A line of metrics.jsonl: an epoch takes 2 s, an evaluation 0.5 s; the test metric is 0.1 lower."""
    line = {"epoch": epoch, "loss": 1.0, "seconds": 2.0}
    if valid is not None:
        line |= {"valid_metric": valid, "test_metric": valid - 0.1, "evaluation_seconds": 0.5}
    if smoothed is not None:
        line |= {"smoothed_valid_metric": smoothed, "smoothed_test_metric": smoothed - 0.2}
    return line


RECORDS = [record(0, 0.3), record(1, None), record(2, 0.6), record(3, 0.9), record(4, 0.8), record(5, 0.95)]


def test_a_curve_counts_training_and_evaluation_apart_and_ends_at_the_limit():
    points = curve(RECORDS, limit=10.0)
    assert [point["passes"] for point in points] == [1, 3, 4, 5]
    assert [point["seconds"] for point in points] == [2.0, 6.0, 8.0, 10.0]
    assert [point["evaluation_seconds"] for point in points] == [0.5, 1.0, 1.5, 2.0]
    found = reached(points, 0.6)
    assert (found["passes_to_target"], found["seconds_to_target"], found["evaluation_seconds_to_target"]) == (3, 6, 1)
    assert (found["best_valid"], found["test_at_best"]) == (0.9, 0.9 - 0.1)
    assert reached(points, 0.99)["passes_to_target"] is None
    assert "smoothed_best_valid" not in found


def test_smoothed_scores_are_a_curve_of_their_own():
    found = reached(curve([record(0, 0.3, 0.7), record(1, 0.6, 0.65)], 10.0), 0.6)
    assert (found["passes_to_target"], found["smoothed_passes_to_target"]) == (2, 1)
    assert (found["smoothed_best_valid"], found["smoothed_test_at_best"]) == (0.7, 0.7 - 0.2)


def test_a_seed_that_does_not_reach_the_target_is_the_latest():
    runs = [{"contestant": "a", "seed": seed} | reached(curve(RECORDS[:4], limit), 0.6) for seed, limit in
            enumerate((10.0, 10.0, 3.0))]  # fmt: skip
    (row,) = medians(runs)
    assert (row["seeds"], row["reached"], row["passes_to_target"]) == (3, 2, 3)
    (row,) = medians(runs[1:])
    assert (row["reached"], row["passes_to_target"]) == (1, None)


def test_a_run_ends_past_its_target_or_at_the_limit():
    """0.6 is reached after 6 s, 0.9 after 8 s, 0.99 never."""
    ends = [
        End(10.0, target, past).seconds(RECORDS) for target, past in ((0.6, 0.0), (0.6, 1.5), (0.9, 1.5), (0.99, 2))
    ]
    assert ends == [10.0, 9.0, 10.0, 10.0]
    assert End(10.0, 0.65, 2.0).seconds([record(0, 0.3, 0.7)]) == 4.0


@pytest.mark.parametrize(
    "text", ["--optimiser adam", "--epochs many", "dgl-sampling --lr fast", "dgl-sampling --stages 3"]
)
def test_wrong_options_are_refused_before_the_first_run(text):
    train = typer.main.get_command(make_app()).commands["train"]
    with pytest.raises(InputError):
        Contestant(text).check("parts", train)
    with pytest.raises(InputError, match="--smooth-labels is called --correct-and-smooth now"):
        Contestant("--smooth-labels").check("parts", train)
    Contestant("--optimizer sgd --lr 0.1 --correct-and-smooth").check("parts", train)
    Contestant("dgl-sampling --lr 0.003 --fanout 5,5").check("parts", train)


@pytest.mark.slow
def test_a_race(tmp_path):
    spec = "communities:nodes=400,communities=8,classes=4,feats=16,train=0.3"
    distgnn("partition", spec, "--parts", 1, "--out", tmp_path / "parts")
    own = "--hidden-feats 8 --epochs 6 --correct-and-smooth"
    words = ["--contestant", own, "--contestant", "dgl-sampling --epochs 3 --hidden-feats 8 --fanout 3,3"]
    words += [
        "--time-to-accuracy",
        1,
        "--seeds",
        1,
        "--out",
        tmp_path / "bench.json",
        "--figures",
        tmp_path / "figures",
    ]
    done = distgnn("bench", tmp_path / "parts", *words)
    report = json.loads((tmp_path / "bench.json").read_text())
    assert report["target"] == 0.01
    assert [row["contestant"] for row in report["rows"]] == [own, words[3]]
    assert [len(run["curve"]) for run in report["runs"]] == [6, 3]
    assert all(row["passes_to_target"] == 1 for row in report["rows"])
    assert report["rows"][0]["smoothed_passes_to_target"] == 1
    assert (tmp_path / "figures" / "time_to_accuracy.png").is_file()
    assert "corrected and smoothed" in done.stdout
