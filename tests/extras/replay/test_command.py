"""`distgnn replay` and `prices` as programs."""

import json

import pytest
from command import distgnn


@pytest.mark.slow
def test_replay_measures_once_and_plays_again(two_parts, tmp_path):
    words = ["replay", two_parts, "--hidden-feats", 8, "--threads", 1, "--at-once", 2, "--repeats", 1, "--json"]
    words += ["--recordings", tmp_path / "kept", "--network", "10mbit"]
    done = distgnn(*words, "--out", tmp_path / "replay.json")  # ranks print where the process does
    assert done.returncode == 0, done.stderr
    first = json.loads(done.stdout)["replays"][0]
    assert len(first["of_rank"]) == 2 and first["efficiency"] <= 1 and first["low"] < first["seconds"] < first["high"]
    assert json.loads((tmp_path / "replay.json").read_text())["replays"][0] == first
    done = distgnn(*words, "--network", "1gbit")
    assert done.returncode == 0, done.stderr
    again, faster = json.loads(done.stdout)["replays"]
    assert again == first and faster["seconds"] < first["seconds"]


@pytest.mark.parametrize(
    "words, says",
    [
        (["--network", "quick"], "network 'quick': expected a rate"),
        (["--at-once", 0], "at_once is 0"),
        (["--out", "/nowhere/replay.json"], "/nowhere/replay.json"),
    ],
)
def test_replay_refuses(refused, two_parts, words, says):
    refused("replay", two_parts, *words, says=says)


def test_a_single_rank_has_no_prices(refused, tmp_path):
    refused("prices", tmp_path / "prices.json", "--ranks", 1, says="a single rank sends nothing")
