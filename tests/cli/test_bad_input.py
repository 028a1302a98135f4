"""Every mistake of a user gets one line, exit code 2, no traceback, no hang and no partial folder."""

import json
import os
from pathlib import Path

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
        ("--parts", -3, "from 1 to"),
        ("--parts", 1000, "1000 parts are more than"),
        ("--method", "magic", "unknown method 'magic'"),
        ("--order", "sideways", "sideways"),
        ("--direction", "up", "up"),
        ("--self-loops", "maybe", "maybe"),
        ("--seed", -1, "seed"),
        ("--out", "/proc/nowhere/parts", "/proc/nowhere"),
    ],
)
def test_partition_options(refused, graph_folder, tmp_path, option, value, says):
    words = {"--parts": 2, "--out": tmp_path / "parts"} | {option: value}
    refused("partition", graph_folder, *[word for pair in words.items() for word in pair], says=says)


def test_partition_into_an_existing_folder(refused, graph_folder, parts):
    refused("partition", graph_folder, "--parts", 2, "--out", parts, says="--overwrite")


def test_partition_does_not_replace_what_is_not_a_partition(refused, graph_folder, tmp_path):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.tex").write_text("precious")
    refused("partition", graph_folder, "--parts", 2, "--out", tmp_path / "thesis", "--overwrite", says="thesis")


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


def edges_of(folder) -> np.ndarray:
    return np.load(folder / "edges.npy")


def broken_graphs():
    def edge_out_of_range(folder):
        edges = edges_of(folder).copy()
        edges[7, 1] = 4000
        np.save(folder / "edges.npy", edges)

    def negative_id(folder):
        edges = edges_of(folder).copy()
        edges[3, 0] = -2
        np.save(folder / "edges.npy", edges)

    def label_out_of_range(folder):
        np.save(folder / "labels.npy", np.full(40, -7))

    def nan_features(folder):
        feats = np.load(folder / "feats.npy")
        feats[5, 2] = np.nan
        np.save(folder / "feats.npy", feats)

    def short_features(folder):
        np.save(folder / "feats.npy", np.load(folder / "feats.npy")[:-1])

    def overlapping_splits(folder):
        np.save(folder / "test.npy", np.array([1, 2, 35]))

    def split_out_of_range(folder):
        np.save(folder / "valid.npy", np.array([40]))

    def truncated(folder):
        whole = (folder / "edges.npy").read_bytes()
        (folder / "edges.npy").write_bytes(whole[:-100])

    def pickled(folder):
        np.save(folder / "labels.npy", np.array([{}] * 40, dtype=object), allow_pickle=True)

    def not_json(folder):
        (folder / "graph.json").write_text("{")

    def no_edges_file(folder):
        (folder / "edges.npy").unlink()

    def no_vertices(folder):
        manifest = json.loads((folder / "graph.json").read_text())
        (folder / "graph.json").write_text(json.dumps(manifest | {"num_nodes": 0}))

    return {
        edge_out_of_range: "edges.npy",
        negative_id: "edges.npy",
        label_out_of_range: "labels.npy",
        nan_features: "feats.npy",
        short_features: "feats.npy",
        overlapping_splits: "test",
        split_out_of_range: "valid",
        truncated: "edges.npy",
        pickled: "labels.npy",
        not_json: "graph.json",
        no_edges_file: "edges",
        no_vertices: "graph",
    }


@pytest.mark.parametrize("damage, says", broken_graphs().items(), ids=lambda value: getattr(value, "__name__", ""))
def test_damaged_graph_folders(refused, graph_folder, tmp_path, damage, says):
    damage(graph_folder)
    refused("partition", graph_folder, "--parts", 2, "--out", tmp_path / "parts", says=says)


@pytest.mark.parametrize(
    "option, value, says",
    [
        ("--model", "transformer", "unknown model 'transformer': choose from sage, gcn"),
        ("--algorithm", "cd-x", "unknown algorithm 'cd-x'"),
        ("--wire", "int3", "unknown wire 'int3'"),
        ("--warmup-epochs", 0, "warmup_epochs is 0"),
        ("--late-row-average", 0.5, "--late-row-average averages rows that are late: cd-0 has none"),
        ("--remote-rule", "paper", "--remote-rule paper is about late rows"),
        ("--norm", "instance", "unknown norm 'instance'"),
        ("--dropout", 1.5, "dropout is 1.5"),
        ("--num-layers", 0, "num_layers is 0"),
        ("--epochs", 0, "epochs is 0"),
        ("--lr", -1, "lr is -1.0"),
        ("--lr", "nan", "lr is nan"),
        ("--weight-decay", -1, "weight_decay"),
        ("--metric", "beauty", "unknown metric 'beauty'"),
        ("--metric", "rocauc", "rocauc needs two classes"),
        ("--lr-schedule", "stairs", "unknown lr_schedule 'stairs'"),
        ("--runs", 0, "runs is 0"),
        ("--dtype", "float16", "float16"),
        ("--threads", 0, "threads"),
    ],
)
def test_train_options(refused, parts, tmp_path, option, value, says):
    refused(
        "train", parts, option, value, *([] if option == "--run-dir" else ["--run-dir", tmp_path / "run"]), says=says
    )


@pytest.mark.slow
def test_train_into_a_run_folder_that_exists(run, refused, parts, tmp_path):
    words = ["train", parts, "--epochs", 2, "--hidden-feats", 4, "--run-dir", tmp_path / "run", "--quiet"]
    assert run(*words)[0] == 0
    refused(*words, says="--overwrite")
    assert run(*words, "--overwrite")[0] == 0


@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_settings_and_prices_must_be_regular_files(refused, parts, tmp_path, kind):
    place = tmp_path / "settings"
    os.mkfifo(place) if kind == "pipe" else place.symlink_to("/dev/zero")
    refused("train", parts, "--run-dir", tmp_path / "run", "--config", place, says="not a regular file")
    refused("plan", parts, "--prices", place, says="not a regular file")
    refused("info", parts, "--prices", place, says="info has no --prices now: distgnn plan has")


def test_settings_beyond_any_number(refused, parts, tmp_path):
    place = tmp_path / "config.toml"
    for line, says in (("epochs", "[train] epochs is '1000"), ("lr", "[train] lr is '1000")):
        place.write_text(f"[train]\n{line} = 1{'0' * 400}\n")
        refused("train", parts, "--run-dir", tmp_path / "run", "--config", place, says=says)


def test_train_does_not_replace_what_is_not_a_run(refused, parts, tmp_path):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.tex").write_text("precious")
    refused("train", parts, "--run-dir", tmp_path / "thesis", "--overwrite", says="left alone")


@pytest.mark.parametrize("command", ["train", "info"])
def test_no_partition_folder(refused, tmp_path, command):
    refused(command, tmp_path / "nowhere", says="nowhere")


def broken_partitions():
    def truncated(folder):
        file = next(folder.glob("part-*/*feats*.npy"))
        file.write_bytes(file.read_bytes()[:-20])
        return file.name

    def flipped_bit(folder):
        file = next(folder.glob("part-*/global_ids.npy"))
        content = bytearray(file.read_bytes())
        content[-1] ^= 1
        file.write_bytes(content)
        return file.name

    def missing_file(folder):
        file = next(folder.glob("part-*/*labels*.npy"))
        file.unlink()
        return file.name

    def from_the_future(folder):
        manifest = json.loads((folder / "partition.json").read_text())
        (folder / "partition.json").write_text(json.dumps(manifest | {"format_version": 99}))
        return "99"

    def not_json(folder):
        (folder / "partition.json").write_text("hello")
        return "partition.json"

    return [truncated, flipped_bit, missing_file, from_the_future, not_json]


@pytest.mark.parametrize("damage", broken_partitions(), ids=lambda damage: damage.__name__)
def test_damaged_partition_folders(refused, parts, tmp_path, damage):
    says = damage(parts)
    refused("train", parts, "--run-dir", tmp_path / "run", says=says)


def test_predict_from_what_is_not_a_run(refused, parts, tmp_path):
    refused("predict", tmp_path, parts, "--out", tmp_path / "p.npy", says="not a run folder")


def test_predict_into_nowhere_and_with_damaged_weights(run, refused, parts, tmp_path):
    folder = tmp_path / "run"
    assert run("train", parts, "--epochs", 2, "--hidden-feats", 4, "--run-dir", folder, "--quiet")[0] == 0
    refused("predict", folder, parts, "--out", tmp_path / "no" / "p.npy", says="existing folder")
    (tmp_path / "old.npy").write_text("precious")
    refused("predict", folder, parts, "--out", tmp_path / "old.npy", says="--overwrite")
    (folder / "checkpoint" / "best.safetensors").write_bytes(b"\xff" * 50)
    refused("predict", folder, parts, "--out", tmp_path / "p.npy", says="best.safetensors is damaged")


@pytest.mark.parametrize(
    "words, script",
    [
        (["bench-kernels", "--repeats", 1], "kernels/bench_kernels.py"),
        (["bench", "parts", "--against-dgl"], "epoch/against_dgl.py"),
        (["bench", "parts", "--time-to-accuracy", 90], "steps/race.py"),
    ],
)
def test_what_is_a_script_now_names_it(refused, words, script):
    refused(*words, says=f"tests/bench/{script}")
    assert (Path(__file__).parents[1] / "bench" / script).is_file()
