"""Every mistake of a user gets one line, exit code 2, no traceback, no hang and no partial folder."""

import os

import numpy as np
import pytest

from distgnn.cli import places


@pytest.mark.parametrize(
    "option, value, says",
    [
        ("--parts", 0, "from 1 to"),
        ("--parts", 1000, "1000 parts are more than"),
        ("--method", "magic", "unknown method 'magic'"),
        ("--out", "/proc/nowhere/parts", "/proc/nowhere"),
    ],
)
def test_partition_options(refused, graph_folder, tmp_path, option, value, says):
    words = {"--parts": 2, "--out": tmp_path / "parts"} | {option: value}
    refused("partition", graph_folder, *[word for pair in words.items() for word in pair], says=says)


def test_partition_into_an_existing_folder(refused, graph_folder, parts):
    refused("partition", graph_folder, "--parts", 2, "--out", parts, says="--overwrite")


def test_partition_does_not_replace_a_partition_with_a_foreign_file(refused, graph_folder, parts):
    (parts / "part-0" / "notes.txt").write_text("precious")
    refused("partition", graph_folder, "--parts", 2, "--out", parts, "--overwrite", says="part-0/notes.txt in it")


@pytest.mark.parametrize(
    "source, says",
    [
        ("no-such-dataset", "no-such-dataset"),
        ("/nowhere/at/all", "/nowhere/at/all"),
        ("rmat:scale=99", "scale"),
        ("rmat:wings=2", "wings"),
        ("communities:nodes=-4", "nodes"),
    ],
)
def test_sources(refused, tmp_path, source, says):
    refused("partition", source, "--parts", 2, "--out", tmp_path / "parts", says=says)


def test_damaged_graph_folders(refused, graph_folder, tmp_path):
    np.save(graph_folder / "edges.npy", np.array([[0, 4000]]))
    refused("partition", graph_folder, "--parts", 2, "--out", tmp_path / "parts", says="edges.npy")


TRAIN = [
    ("--model transformer", "unknown model 'transformer': choose from sage, gcn"),
    ("--metric rocauc", "rocauc needs two classes"),
    ("--threads 0", "threads"),
    ("--memory many", "memory is 'many': expected a size such as 8GB"),
    ("--memory 1MB", "rank 0 needs about 0.5"),
    ("--restarts -1", "restarts is -1: expected at least 0"),
    ("--resume --overwrite", "contradict"),
    ("--set clip_grd=1", "(did you mean clip_grad?)"),
    ("--task link", "task link needs a split of edges"),
]


@pytest.mark.parametrize(("words", "says"), TRAIN, ids=[words for words, _ in TRAIN])
def test_train_options(refused, parts, tmp_path, words, says):
    refused("train", parts, *words.split(), "--run-dir", tmp_path / "run", says=says)


@pytest.mark.slow
def test_train_into_a_run_folder_that_exists(run, refused, parts, tmp_path):
    words = ["train", parts, "--epochs", 2, "--hidden-feats", 8, "--run-dir", tmp_path / "run", "--quiet"]
    assert run(*words)[0] == 0
    refused(*words, says="--overwrite")
    assert run(*words, "--overwrite")[0] == 0


@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_settings_must_be_regular_files(refused, parts, tmp_path, kind):
    place = tmp_path / "settings"
    os.mkfifo(place) if kind == "pipe" else place.symlink_to("/dev/zero")
    refused("train", parts, "--run-dir", tmp_path / "run", "--config", place, says="not a regular file")


def test_a_working_directory_that_was_removed(refused, two_parts, tmp_path, monkeypatch):
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    refused("train", two_parts, "--run-dir", tmp_path / "run", says="the working directory was removed")


def test_predict_from_what_is_not_a_run(refused, parts, tmp_path):
    refused("predict", tmp_path, parts, "--out", tmp_path / "p.npy", says="not a run folder")


def test_predict_into_nowhere_and_with_damaged_weights(run, refused, parts, tmp_path):
    folder = tmp_path / "run"
    assert run("train", parts, "--epochs", 2, "--hidden-feats", 8, "--run-dir", folder, "--quiet")[0] == 0
    refused("predict", folder, parts, "--out", tmp_path / "no" / "p.npy", says="existing folder")
    (tmp_path / "old.npy").write_text("precious")
    refused("predict", folder, parts, "--out", tmp_path / "old.npy", says="--overwrite")
    refused("predict", folder, parts, "--out", tmp_path / "p.json", says="is .npy, and the name says .json")
    (tmp_path / "p.names.npy").write_text("of an earlier answer")
    refused("predict", folder, parts, "--out", tmp_path / "p.npy", says="p.names.npy exists")
    words = ["--out", tmp_path / "p.npy", "--overwrite", "--quiet"]
    assert run("predict", folder, parts, *words)[0] == 0 and not (tmp_path / "p.names.npy").exists()
    (tmp_path / "p.npy").unlink()
    (folder / "checkpoint" / "best.safetensors").write_bytes(b"\xff" * 50)
    refused("predict", folder, parts, "--out", tmp_path / "p.npy", says="best.safetensors is damaged")


def test_too_little_memory_is_refused_before_ranks_start(refused, two_parts, tmp_path, monkeypatch):
    monkeypatch.setattr(places, "run_under_mpi", lambda *_, **__: pytest.fail("ranks were started"))
    refused("train", two_parts, "--memory", "1MB", says="raise --memory")


@pytest.mark.parametrize("end", ["csv", "parquet"])
def test_a_name_says_the_format(refused, parts, tmp_path, end):
    refused("report", parts, "--out", tmp_path / f"t.{end}", says=f", and the name says .{end}: end it in .")
