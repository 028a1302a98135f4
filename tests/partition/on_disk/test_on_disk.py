"""`--memory`: a cut made on disk has the same files as one made in memory, goes on after a stop, keeps the limit."""

import re
import shutil

import numpy as np
import pytest

from distgnn.datasets import GraphData
from distgnn.errors import InputError
from distgnn.partition import partition_graph, read_manifest
from distgnn.partition.on_disk.run import EDGE_BYTES
from distgnn.partition.on_disk.workspace import MemoryLimit, resident

PHASES = (
    "edges", "sort_0", "cluster", "sort_1", "place", "refine_0", "refine_2", "deal", "owners", "feats", "write"
)  # fmt: skip


def make_folder(place, directed=True, weighted=False, num_nodes=60, num_edges=400, seed=0):
    """A graph folder with features, labels, parallel and reciprocal rows, self-loops and isolated vertices."""
    rng = np.random.default_rng(seed)
    edges = rng.integers(0, num_nodes - 3, (num_edges, 2))
    graph = GraphData.from_arrays(
        edges,
        num_nodes,
        directed,
        feats=rng.random((num_nodes, 5), dtype=np.float32),
        labels=rng.integers(-1, 4, num_nodes),
        edge_weight=rng.random(num_edges, dtype=np.float32) if weighted else None,
        train=np.arange(10),
        valid=np.arange(10, 20),
        test=np.arange(20, 30),
    )
    graph.save(place)
    return str(place)


def contents(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*.npy")}


MEASURED = ("seconds", "phase_seconds", "peak_rss_bytes", "phases", "memory_limit_bytes", "sha256")


def facts(folder):
    return {key: value for key, value in read_manifest(folder).items() if key not in MEASURED}


@pytest.mark.parametrize(
    ("directed", "weighted", "direction", "self_loops", "parts"),
    [
        (True, False, "both", "keep", 3),
        (True, True, "stored", "remove", 4),
        (True, False, "reversed", "add", 2),
        pytest.param(False, False, "stored", "keep", 70, marks=pytest.mark.slow),
        (False, True, "stored", "add", 1),
        (True, False, "both", "add", 5),
    ],
)
def test_same_files_as_in_memory(tmp_path, directed, weighted, direction, self_loops, parts):
    source = make_folder(tmp_path / "graph", directed, weighted)
    choices = {"method": "cmr-stream", "direction": direction, "self_loops": self_loops}
    partition_graph(source, parts, tmp_path / "memory", **choices)
    partition_graph(source, parts, tmp_path / "disk", memory="8GB", **choices)
    assert contents(tmp_path / "disk") == contents(tmp_path / "memory")
    assert facts(tmp_path / "disk") == facts(tmp_path / "memory")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["disk", "graph", "memory"]


def stop_in(phase, after=0):
    """A progress report that is interrupted in a phase, before its last step is done but after so many."""

    def report(name, done, total):
        if name == phase and after <= done < total:
            raise KeyboardInterrupt

    return report


def test_goes_on_after_a_stop_in_any_phase(tmp_path):
    source = make_folder(tmp_path / "graph")
    choices = {"method": "cmr-stream", "direction": "both", "memory": "8GB"}
    partition_graph(source, 3, tmp_path / "whole", **choices)
    lines = []
    for phase in PHASES:
        with pytest.raises(KeyboardInterrupt):
            partition_graph(source, 3, tmp_path / "parts", progress=stop_in(phase), say=lines.append, **choices)
        assert not (tmp_path / "parts").exists()
        assert (tmp_path / ".parts.work").is_dir()
    with pytest.raises(KeyboardInterrupt):
        partition_graph(source, 3, tmp_path / "parts", progress=stop_in("write", 2), **choices)
    (tmp_path / ".parts.work" / "parts" / "part-1").rename(tmp_path / "on-its-way")
    seen = set()
    partition_graph(
        source, 3, tmp_path / "parts", progress=lambda name, *_: seen.add(name), say=lines.append, **choices
    )
    assert seen == {"load", "edges", "write"}  # the edges are only opened
    # The third may have been on its way when the report of the second was interrupted.
    assert re.fullmatch("going on after [23] written parts, which an earlier run had finished", lines[-1])
    assert contents(tmp_path / "parts") == contents(tmp_path / "whole")
    assert not (tmp_path / ".parts.work").exists()


@pytest.mark.slow
def test_other_settings_and_other_graphs_start_anew(tmp_path):
    source = make_folder(tmp_path / "graph")
    for change in ("parts", "graph"):
        with pytest.raises(KeyboardInterrupt):
            partition_graph(source, 3, tmp_path / "parts", "cmr-stream", memory="8GB", progress=stop_in("write"))
        parts = 4 if change == "parts" else 3
        if change == "graph":
            make_folder(tmp_path / "other", seed=1)
            (tmp_path / "graph" / "edges.npy").write_bytes((tmp_path / "other" / "edges.npy").read_bytes())
        lines = []
        partition_graph(source, parts, tmp_path / "parts", "cmr-stream", memory="8GB", say=lines.append)
        partition_graph(source, parts, tmp_path / "whole", "cmr-stream", overwrite=True)
        assert [line for line in lines if not line.startswith("caution")] == []
        assert contents(tmp_path / "parts") == contents(tmp_path / "whole")
        partition_graph(source, 2, tmp_path / "parts", "random", overwrite=True)
        (tmp_path / "parts").rename(tmp_path / f"done-{change}")


def test_an_error_leaves_nothing_behind(tmp_path):
    source = make_folder(tmp_path / "graph", weighted=True)
    with pytest.raises(InputError, match="would merge"):
        partition_graph(source, 3, tmp_path / "parts", "cmr-stream", direction="both", memory="8GB")
    assert [path.name for path in tmp_path.iterdir()] == ["graph"]


def test_a_damaged_workspace_starts_anew_and_foreign_files_stay(tmp_path):
    source, work = make_folder(tmp_path / "graph"), tmp_path / ".parts.work"
    choices = {"method": "cmr-stream", "direction": "both", "memory": "8GB"}
    partition_graph(source, 3, tmp_path / "whole", **choices)
    with pytest.raises(KeyboardInterrupt):
        partition_graph(source, 3, tmp_path / "parts", progress=stop_in("feats"), **choices)
    shutil.copytree(work, tmp_path / "stopped")
    lines = []

    def change_number(work):
        record = work / "sort_1.json"
        record.write_text(record.read_text().replace('"number": ', '"number": 1'))

    def change_facts(work):
        record = work / "edges.json"
        record.write_text(record.read_text().replace('"merged_rows": ', '"merged_rows": 9'))

    def shorten(work):
        (work / "number.bin").write_bytes((work / "number.bin").read_bytes()[:-1])

    damages = [change_number, change_facts, shorten, lambda work: (work / "cluster.json").unlink()]
    damages += [lambda work: (work / "owners.json").write_text("[" * 10000)]
    for damage in damages:
        shutil.rmtree(work, ignore_errors=True)
        shutil.copytree(tmp_path / "stopped", work)
        damage(work)
        partition_graph(source, 3, tmp_path / "parts", overwrite=True, say=lines.append, **choices)
        assert contents(tmp_path / "parts") == contents(tmp_path / "whole")
    assert lines == []
    work.mkdir()
    (work / "thesis.txt").write_text("precious")
    with pytest.raises(InputError, match=r"thesis\.txt in it is not one of ours"):
        partition_graph(source, 3, tmp_path / "parts", overwrite=True, **choices)
    assert (work / "thesis.txt").is_file()


def test_two_runs_do_not_share_a_folder(tmp_path):
    source = make_folder(tmp_path / "graph")

    def start_another(name, done, total):
        if name == "sort_0" and done == 0:
            partition_graph(source, 3, tmp_path / "parts", "cmr-stream", memory="8GB")

    with pytest.raises(InputError, match="another run"):
        partition_graph(source, 3, tmp_path / "parts", "cmr-stream", memory="8GB", progress=start_another)


def test_what_fits_stays_in_memory_and_what_does_not_is_said(tmp_path, monkeypatch):
    source = make_folder(tmp_path / "graph")
    lines = []
    partition_graph(source, 3, tmp_path / "small", memory="8GB", say=lines.append)
    assert lines == []
    assert read_manifest(tmp_path / "small")["method"] == "cmr"
    monkeypatch.setitem(EDGE_BYTES, "cmr", 10**9)
    monkeypatch.setitem(EDGE_BYTES, "libra", 10**9)
    partition_graph(source, 3, tmp_path / "large", memory="8GB", say=lines.append)
    assert len(lines) == 1
    assert "the limit is 8.0 GB: cmr-stream works on disk" in lines[0]
    manifest = read_manifest(tmp_path / "large")
    assert manifest["method"] == "cmr-stream"
    assert set(manifest["phases"]) == {*PHASES, "refine_1"}
    with pytest.raises(InputError, match=r"libra .* needs about [\d.]+ GB, the limit is 8.0 GB"):
        partition_graph(source, 3, tmp_path / "none", "libra", memory="8GB")


def test_a_graph_that_fits_nowhere_is_refused_with_numbers(tmp_path):
    source = make_folder(tmp_path / "graph")
    with pytest.raises(InputError, match=r"cannot be cut within 0.5 GB: .* give --memory [\d.]+GB"):
        partition_graph(source, 30000, tmp_path / "parts", "cmr-stream", memory="500MB", direction="reversed")


def test_too_little_memory_is_refused(tmp_path):
    with pytest.raises(InputError, match="100000000 bytes is too little"):
        partition_graph(make_folder(tmp_path / "graph"), 2, tmp_path / "parts", memory="100MB")


def test_mapped_pages_are_given_back(tmp_path):
    values = np.lib.format.open_memmap(tmp_path / "values.npy", mode="w+", dtype=np.int64, shape=(1 << 22,))
    values[:] = np.arange(len(values))
    before, own = resident()
    MemoryLimit(10**9).give_back()
    assert resident()[0] < before - 24_000_000
    assert resident()[1] < own + 4_000_000
    assert int(values[12345]) == 12345


def test_what_cannot_be_loaded_within_the_limit_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"loading rmat:scale=24 takes about 8.6 GB beside .* the limit is 2.0 GB"):
        partition_graph("rmat:scale=24", 3, tmp_path / "parts", memory="2GB")
    folder = tmp_path / "text"
    folder.mkdir()
    (folder / "graph.json").write_text('{"name": "text", "num_nodes": 5, "directed": false}')
    with open(folder / "edges.txt", "wb") as file:
        file.truncate(3 * 10**9)  # a sparse file: nothing is read
    with pytest.raises(InputError, match=r"loading .*text takes about 3.0 GB beside .* the limit is 2.0 GB"):
        partition_graph(folder, 3, tmp_path / "parts", memory="2GB")
    graph = GraphData.from_arrays(np.array([[0, 1]]), 2, True)
    graph.feats, graph.num_nodes = np.broadcast_to(np.float32(1), (10**7, 64)), 10**7
    with pytest.raises(InputError, match=r"normalised features .* take 2.6 GB in memory, the limit is 2.0 GB"):
        partition_graph(graph, 3, tmp_path / "parts", memory="2GB", normalize_feats="row")
    assert [path.name for path in tmp_path.iterdir()] == ["text"]
