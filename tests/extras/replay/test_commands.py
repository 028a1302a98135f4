"""`distgnn replay` and `plan` as programs."""

import json

import pytest


@pytest.mark.slow
def test_replay_measures_once_and_plays_again(run, two_parts, tmp_path):
    words = ["replay", two_parts, "--hidden-feats", 8, "--threads", 1, "--at-once", 2, "--repeats", 1, "--json"]
    words += ["--recordings", tmp_path / "kept", "--network", "10mbit"]
    code, out, err = run(*words, "--out", tmp_path / "replay.json", "--trace", tmp_path / "trace.json")
    assert code == 0, err
    first = json.loads(out)["replays"][0]
    assert len(first["peak_rss_bytes"]) == first["ranks"] == 2 and first["efficiency"] <= 1
    assert json.loads((tmp_path / "replay.json").read_text())["replays"][0] == first
    names = {event["name"] for event in json.loads((tmp_path / "trace.json").read_text())["traceEvents"]}
    assert {"epoch 0", "dense", "wait"} <= names
    code, out, err = run(*words, "--network", "1gbit")
    assert code == 0, err
    again, faster = json.loads(out)["replays"]
    assert again == first and faster["epoch_seconds"] < first["epoch_seconds"]


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


def test_plan_needs_no_data(run, tmp_path):
    code, out, err = run("plan", "ogbn-papers100M", "--ranks", "32,64", "--data-root", tmp_path, "--json")
    assert code == 0, err
    found = json.loads(out)
    assert found["graph"]["num_nodes"] == 111_059_956 and found["advised"]["ranks"] in (32, 64)
    assert any("Libra" in line for line in found["assumed"]) and len(found["commands"]) == 2


@pytest.mark.parametrize(
    "words, says",
    [
        (["ogbn-papers100M", "--ranks", "some"], "ranks 'some'"),
        (["ogbn-papers100M", "--ranks", "1,2", "--memory-per-rank", "4GB"], "nothing fits"),
        (["ogbn-papers100M", "--ranks", "1,2", "--target-seconds", 0.001], "no choice reaches"),
        (["no-such-graph"], "no-such-graph"),
        (["ogbn-papers100M", "--model", "rgcn"], "plan counts no edge features"),
    ],
)
def test_plan_refuses(refused, tmp_path, words, says):
    refused("plan", *words, "--data-root", tmp_path, says=says)
