"""`--memory`: a cut made on disk has the same files as one made in memory, leaves nothing behind, keeps the limit."""

import numpy as np
import pytest

from distgnn.config import CutConfig
from distgnn.datasets import GraphData, load_graph
from distgnn.errors import InputError
from distgnn.partition import VertexCut, load_part, partition_graph, read_manifest
from distgnn.partition.on_disk.run import EDGE_BYTES
from distgnn.partition.on_disk.workspace import MemoryLimit, resident
from distgnn.partition.pipeline import write_partition
from distgnn.partition.repartition import load_whole

from ..graphs import NAMES, awkward

PHASES = (
    "edges", "sort_0", "cluster", "sort_1", "place", "refine_0", "refine_1", "refine_2", "deal", "owners", "feats",
    "write",
)  # fmt: skip


@pytest.fixture
def on_disk(monkeypatch):
    """No graph fits in memory."""
    monkeypatch.setitem(EDGE_BYTES, "cmr", 10**12)


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


MEASURED = ("seconds", "phase_seconds", "peak_rss_bytes", "memory_limit_bytes", "sha256")


def facts(folder):
    return {key: value for key, value in read_manifest(folder).items() if key not in MEASURED}


def write_in_memory(folder, source, config, out):
    """The cut in a folder, written by the steps of a cut in memory; the order of owned rows is the folder's."""
    graph = load_graph(source)
    edges, parts = graph.edge_list(config.direction, config.self_loops), read_manifest(folder)["num_parts"]
    edge_part = np.full(edges.num_edges, -1, dtype=np.int16)
    owner, order = np.full((2, edges.num_nodes), -1, dtype=np.int32)
    for part in range(parts):
        local = load_part(folder, part)
        edge_part[local.arc_ids % edges.num_edges] = part
        owned = local.global_ids[: local.num_owned]
        owner[owned], order[owned] = part, np.arange(len(owned))
    cut = VertexCut(parts, edge_part, owner, order=order)
    write_partition(graph, edges, cut, out, how=config.manifest())


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
def test_same_files_as_in_memory(tmp_path, on_disk, directed, weighted, direction, self_loops, parts):
    """Of the same cut; what it is made of is no concern of how it is written."""
    source = make_folder(tmp_path / "graph", directed, weighted)
    config = CutConfig(direction=direction, self_loops=self_loops)
    partition_graph(source, parts, tmp_path / "disk", config, memory="8GB")
    write_in_memory(tmp_path / "disk", source, config, tmp_path / "memory")
    assert contents(tmp_path / "disk") == contents(tmp_path / "memory")
    assert facts(tmp_path / "disk") == facts(tmp_path / "memory")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["disk", "graph", "memory"]


@pytest.mark.parametrize("name", [name for name in NAMES if awkward(name)[0]])
def test_no_graph_is_too_odd(name, tmp_path, on_disk):
    edges, num_nodes = awkward(name)
    graph = GraphData.from_arrays(np.array(edges).reshape(-1, 2), num_nodes, directed=False)
    num_arcs = graph.edge_list().num_arcs
    for parts in [count for count in (1, 2, 5, 65) if count <= num_arcs]:
        partition_graph(graph, parts, tmp_path / str(parts), memory="8GB")
        whole = load_whole(tmp_path / str(parts)).edge_list
        found = sorted(zip(whole.src.tolist(), whole.dst.tolist(), strict=True))
        assert sorted(map(sorted, found)) == sorted(map(sorted, graph.edges.tolist()))


@pytest.mark.parametrize("phase", PHASES)
def test_an_interrupt_leaves_nothing_behind(tmp_path, on_disk, phase):
    def report(name, done, total):
        if name == phase:
            raise KeyboardInterrupt

    source = make_folder(tmp_path / "graph")
    with pytest.raises(KeyboardInterrupt):
        partition_graph(source, 3, tmp_path / "parts", direction="both", memory="8GB", progress=report)
    assert [path.name for path in tmp_path.iterdir()] == ["graph"]


def test_an_error_leaves_nothing_behind(tmp_path, on_disk):
    source = make_folder(tmp_path / "graph", weighted=True)
    with pytest.raises(InputError, match="would merge"):
        partition_graph(source, 3, tmp_path / "parts", direction="both", memory="8GB")
    assert [path.name for path in tmp_path.iterdir()] == ["graph"]


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
    assert "the limit is 8.0 GB: it works on disk, with more copies" in lines[0]
    assert tuple(read_manifest(tmp_path / "large")["phase_seconds"]) == ("load", *PHASES)
    with pytest.raises(InputError, match=r"libra .* needs about [\d.]+ GB, the limit is 8.0 GB"):
        partition_graph(source, 3, tmp_path / "none", "libra", memory="8GB")


def test_a_graph_that_fits_nowhere_is_refused_with_numbers(tmp_path, on_disk):
    source = make_folder(tmp_path / "graph")
    with pytest.raises(InputError, match=r"cannot be cut within 0.5 GB: .* give --memory [\d.]+GB"):
        partition_graph(source, 30000, tmp_path / "parts", memory="500MB", direction="reversed")


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
