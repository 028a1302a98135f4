"""A cut on disk has the same files as one made in memory."""

import numpy as np
import pytest

from distgnn.config import CutConfig
from distgnn.datasets import load_graph
from distgnn.partition import VertexCut, load_part, partition_graph, read_manifest, write_partition

from ..folders import make_graph

MEASURED = ("seconds", "phase_seconds", "peak_rss_bytes", "memory_limit_bytes", "sha256")


def contents(folder):
    """All arrays, and what the manifest says of the cut."""
    arrays = {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*.npy")}
    return arrays, {key: value for key, value in read_manifest(folder).items() if key not in MEASURED}


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
    source = make_graph(directed=directed, weighted=weighted).save(tmp_path / "graph")
    config = CutConfig(direction=direction, self_loops=self_loops)
    partition_graph(source, parts, tmp_path / "disk", config, memory="8GB")
    write_in_memory(tmp_path / "disk", source, config, tmp_path / "memory")
    assert contents(tmp_path / "disk") == contents(tmp_path / "memory")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["disk", "graph", "memory"]
