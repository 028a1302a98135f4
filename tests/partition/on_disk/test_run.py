"""`--memory`: a cut on disk has every edge, leaves nothing behind, and is made within the limit or refused."""

import numpy as np
import pytest

from distgnn.datasets import GraphData
from distgnn.errors import InputError
from distgnn.partition import partition_graph, read_manifest
from distgnn.partition.on_disk.run import EDGE_BYTES
from distgnn.partition.repartition import load_whole

from ..folders import make_graph
from ..graphs import NAMES, awkward

PHASES = (
    "edges", "sort_0", "cluster", "sort_1", "place", "refine_0", "refine_1", "refine_2", "deal", "owners", "feats",
    "write",
)  # fmt: skip


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

    source = make_graph(directed=True).save(tmp_path / "graph")
    with pytest.raises(KeyboardInterrupt):
        partition_graph(source, 3, tmp_path / "parts", direction="both", memory="8GB", progress=report)
    assert [path.name for path in tmp_path.iterdir()] == ["graph"]


def test_an_error_leaves_nothing_behind(tmp_path, on_disk):
    source = make_graph(weighted=True, directed=True).save(tmp_path / "graph")
    with pytest.raises(InputError, match="would merge"):
        partition_graph(source, 3, tmp_path / "parts", direction="both", memory="8GB")
    assert [path.name for path in tmp_path.iterdir()] == ["graph"]


def test_what_fits_stays_in_memory_and_what_does_not_is_said(tmp_path, monkeypatch):
    source = make_graph().save(tmp_path / "graph")
    lines = []
    partition_graph(source, 3, tmp_path / "small", memory="8GB", say=lines.append)
    assert lines == [] and read_manifest(tmp_path / "small")["method"] == "cmr"
    monkeypatch.setitem(EDGE_BYTES, "cmr", 10**9)
    monkeypatch.setitem(EDGE_BYTES, "libra", 10**9)
    partition_graph(source, 3, tmp_path / "large", memory="8GB", say=lines.append)
    assert len(lines) == 1 and "the limit is 8.0 GB: it works on disk, with more copies" in lines[0]
    assert tuple(read_manifest(tmp_path / "large")["phase_seconds"]) == ("load", *PHASES)
    with pytest.raises(InputError, match=r"libra .* needs about [\d.]+ GB, the limit is 8.0 GB"):
        partition_graph(source, 3, tmp_path / "none", "libra", memory="8GB")


def test_a_graph_that_fits_nowhere_is_refused_with_numbers(tmp_path, on_disk):
    source = make_graph(directed=True).save(tmp_path / "graph")
    with pytest.raises(InputError, match=r"cannot be cut within 0.5 GB: .* give --memory [\d.]+GB"):
        partition_graph(source, 30000, tmp_path / "parts", memory="500MB", direction="reversed")


def test_too_little_memory_is_refused(tmp_path):
    with pytest.raises(InputError, match="100000000 bytes is too little"):
        partition_graph(make_graph(directed=True).save(tmp_path / "graph"), 2, tmp_path / "parts", memory="100MB")


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
