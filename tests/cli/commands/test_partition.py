"""`distgnn partition` says in lines what it found in a graph; `--validate` prints all of it and cuts nothing."""

import json

import numpy as np

from distgnn.datasets import GraphData


def written(tmp_path, **fields):
    edges = np.sort(np.random.default_rng(0).integers(0, 20, (60, 2)))  # one-way
    fields = {"feats": np.ones((20, 2)), "labels": np.arange(20) % 3} | fields
    folder = GraphData.from_arrays(edges, 20, **fields).save(tmp_path / "graph")
    np.save(folder / "year.npy", np.arange(20))
    return folder


def said(err):
    """Lines of the program, but for the one that kernels are compiled."""
    return [line for line in err.splitlines() if line.startswith("distgnn: ") and "compiling kernels" not in line]


def test_what_is_found_is_said_in_one_line_each(run, tmp_path):
    words = ["partition", written(tmp_path), "--parts", 2, "--method", "libra"]
    code, _, err = run(*words, "--out", tmp_path / "a")
    lines = said(err)
    assert code == 0 and len(lines) == 3
    assert lines[0] == "distgnn: left out: year.npy"
    assert "messages travel one way" in lines[1] and "--split 0.6,0.2,0.2" in lines[2]
    code, _, err = run(*words, "--out", tmp_path / "b", "--split", "0.6,0.2,0.2", "--direction", "both", "--seed", 3)
    assert said(err) == [
        "distgnn: random split by seed 3, stratified by class: train 12, valid 4, test 4",
        "distgnn: left out: year.npy",
    ]
    assert json.loads((tmp_path / "b" / "partition.json").read_text())["graph"]["train"] == 12
    assert run(*words, "--out", tmp_path / "c", "--quiet")[1:] == ("", "")


def test_a_split_that_is_none_is_refused(refused, tmp_path):
    folder = written(tmp_path, train=[0])
    for split, says in (("a,b", "expected shares"), ("0.9,0.9,0", "at most 1"), ("0.6,0.2,0.2", "has a split already")):
        refused("partition", folder, "--parts", 2, "--out", tmp_path / "parts", "--split", split, says=says)


def test_validate_prints_everything_and_cuts_nothing(run, tmp_path):
    folder = written(tmp_path)
    code, out, err = run("partition", folder, "--validate")
    assert (code, err) == (0, "") and all(word in out for word in ("year.npy", "one way", "--split", "self_loops"))
    feats = np.ones((20, 2))
    feats[[4, 7]] = np.inf
    np.save(folder / "feats.npy", feats)
    np.save(folder / "labels.npy", np.full(20, -9))
    np.save(folder / "train.npy", [0, 99])
    code, out, _ = run("partition", folder, "--validate", "--json")
    wrong = {one["field"]: one["count"] for one in json.loads(out) if one["severity"] == "wrong"}
    assert code == 2 and wrong == {"feats": 2, "labels": 20, "train, valid, test": 1}
    assert not (tmp_path / "parts").exists()
