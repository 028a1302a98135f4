"""Every mistake of a user gets one line, exit code 2, no traceback, no hang and no partial folder."""

import os

import numpy as np
import pytest


@pytest.mark.parametrize(
    "words, says",
    [
        (["--bogus"], "No such option: --bogus"),
        (["parttion"], "No such command"),
        (["train"], "Missing argument 'parts'"),
        (["partition", "cora", "--out", "x"], "Missing option '--parts'"),
        (["partition", "cora", "--parts", "two", "--out", "x"], "valid integer"),
        (["download", "ogbn-nothing"], "ogbn-nothing"),
    ],
)
def test_the_command_line_itself(refused, words, says):
    refused(*words, says=says)


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
    ("--model sgae", "did you mean sage?"),
    ("--norm layr", "did you mean layer?"),
    ("--algorithm cd-x", "unknown algorithm 'cd-x'"),
    ("--wire int3", "unknown wire 'int3'"),
    ("--dropout 1.5", "dropout is 1.5"),
    ("--num-layers 0", "num_layers is 0"),
    ("--epochs 0", "epochs is 0"),
    ("--lr nan", "lr is nan"),
    ("--weight-decay -1", "weight_decay"),
    ("--metric rocauc", "rocauc needs two classes"),
    ("--lr-schedule stairs", "unknown lr_schedule 'stairs'"),
    ("--runs 0", "runs is 0"),
    ("--dtype float16", "float16"),
    ("--threads 0", "threads"),
    ("--memory many", "memory is 'many': expected a size such as 8GB"),
    ("--memory 1MB", "rank 0 needs about 0.5"),
    ("--timeout -1", "timeout is -1.0"),
    ("--restarts -1", "restarts is -1: expected at least 0"),
    ("--resume --overwrite", "contradict"),
    ("--set clip_grad", "--set clip_grad: expected NAME=VALUE"),
    ("--set clip_grd=1", "(did you mean clip_grad?)"),
    ("--set hidden_feats=8", "--set hidden_feats=8: choose from "),
    ("--set clip_grad=much", "--set clip_grad=much: expected a number"),
    ("--set cache_first=1", "expected True or False"),
    ("--set stem=line", "did you mean linear?"),
    ("--set clip_grad=-1", "clip_grad is -1.0: expected at least 0.0"),
    ("--task link", "task link needs a split of edges"),
    ("--set decoder=dot", "decoder dot is for pairs of vertices: task node has none"),
    ("--task link --set decoder=bilinear", "unknown decoder 'bilinear'"),
    ("--task edge --set decoder=dot", "decoder dot gives one number"),
    ("--model edgegat", "edgegat needs edge features: this graph has none"),
    ("--model rgcn", "rgcn needs edge types: this graph has none"),
    ("--model hgt", "hgt is of graphs of several types"),
    ("--set num_bases=2", "num_bases is for rgcn"),
    ("--model gine --weighted", "gine takes no edge weights: choose gin"),
    ("--remat --wire int8", "--remat repeats exchanges"),
    ("--remat --set wire_backward=bfloat16", "--remat repeats exchanges"),
    ("--remat --algorithm cd-2", "--remat repeats exchanges"),
    ("--model gatv2 --dtype bfloat16", "bfloat16 is for sage, gcn, gat, gin"),
    ("--dtype float64 --wire int8", "narrow float32 rows"),
    ("--norm batch --dtype bfloat16", "bfloat16 is for sage, gcn, gat, gin"),
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


def test_settings_beyond_any_number(refused, parts, tmp_path):
    place = tmp_path / "config.toml"
    for line, says in (("epochs", "[train] epochs is '1000"), ("lr", "[train] lr is '1000")):
        place.write_text(f"[train]\n{line} = 1{'0' * 400}\n")
        refused("train", parts, "--run-dir", tmp_path / "run", "--config", place, says=says)


def test_a_working_directory_that_was_removed(refused, two_parts, tmp_path, monkeypatch):
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    refused("train", two_parts, "--run-dir", tmp_path / "run", says="the working directory was removed")


@pytest.mark.parametrize("command", ["train", "info"])
def test_no_partition_folder(refused, tmp_path, command):
    refused(command, tmp_path / "nowhere", says="nowhere")


def test_damaged_partition_folders(refused, parts, tmp_path):
    file = next(parts.glob("part-*/global_ids.npy"))
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    refused("train", parts, "--run-dir", tmp_path / "run", says=file.name)


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
