"""`distgnn correct-smooth` as a user types it."""

import json

import numpy as np


def test_scores_and_accuracies(ran, parts, refused, graph_folder, tmp_path):
    words = ["--epochs", 2, "--hidden-feats", 8, "--run-dir", tmp_path / "run", "--quiet"]
    ran("train", parts, *words)
    out = tmp_path / "scores.npy"
    found = json.loads(ran("correct-smooth", tmp_path / "run", parts, "--out", out, "--json"))
    scores = np.load(out)
    assert (scores.shape, scores.dtype) == ((40, 4), np.float32)
    labels, test = np.load(graph_folder / "labels.npy"), np.load(graph_folder / "test.npy")
    assert found["after"]["test"] == np.mean(scores[test].argmax(1) == labels[test])
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert found["before"]["test"] == summary["test_accuracy"]
    assert found["after"]["train"] > found["before"]["train"]  # training labels are given
    assert "->" in ran("correct-smooth", tmp_path / "run", parts)
    refused("correct-smooth", tmp_path / "run", parts, "--out", out, says="exists: choose another --out")
    refused("correct-smooth", tmp_path / "run", parts, "--smoothing-alpha", 2, says="smoothing_alpha is 2.0")
    refused("correct-smooth", tmp_path / "nowhere", parts, says="is not a run folder")
    for end in ("csv", "parquet"):
        refused("correct-smooth", tmp_path / "run", parts, "--out", tmp_path / f"p.{end}", says="end it in .npy")
    file = tmp_path / "run" / "config.toml"
    file.write_text(file.read_text().replace('task = "node"', 'task = "link"'))
    refused("correct-smooth", tmp_path / "run", parts, says="Correct and Smooth is for task node")
