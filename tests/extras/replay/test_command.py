"""`distgnn replay` and `prices` as programs."""

import json

import pytest
from command import distgnn


@pytest.mark.slow
def test_replay_predicts_several_networks(two_parts, tmp_path):
    words = ["replay", two_parts, "--hidden-feats", 8, "--threads", 1, "--at-once", 2, "--repeats", 1, "--json"]
    words += ["--network", "10mbit", "--network", "1gbit", "--out", tmp_path / "replay.json"]
    done = distgnn(*words)  # ranks print where the process does
    assert done.returncode == 0, done.stderr
    first, faster = json.loads(done.stdout)["replays"]
    assert len(first["of_rank"]) == 2 and first["efficiency"] <= 1 and first["low"] < first["seconds"] < first["high"]
    assert json.loads((tmp_path / "replay.json").read_text())["replays"] == [first, faster]
    assert faster["seconds"] < first["seconds"]


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
