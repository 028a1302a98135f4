"""Cutting anew from a partition folder: the same files as cutting the source, for every kind of graph."""

import numpy as np
import pytest
import scipy.sparse

from distgnn.datasets import GraphData
from distgnn.errors import InputError, PartitionFormatError
from distgnn.partition import partition_graph, read_manifest
from distgnn.partition.repartition import repartition


def graph_of(kind: str) -> GraphData:
    random = np.random.default_rng(5)
    nodes, rows = 80, 320
    fields = {"feats": random.standard_normal((nodes, 5)).astype(np.float32), "labels": random.integers(-1, 4, nodes)}
    if kind == "sparse":
        fields["feats"] = scipy.sparse.random(nodes, 30, 0.1, "csr", np.float32, random)
    if kind == "weighted":
        fields["edge_weight"] = random.random(rows).astype(np.float32)
    if kind == "multilabel":
        fields["labels"] = random.integers(0, 2, (nodes, 3)).astype(np.int8)
    if kind == "bare":
        fields = {}
    if kind == "typed":
        fields |= {"edge_types": random.integers(0, 3, rows), "node_types": random.integers(0, 2, nodes)}
        fields["edge_feats"] = random.standard_normal((rows, 2)).astype(np.float32)
    splits = np.split(random.permutation(nodes), [40, 60])
    edges = random.integers(0, nodes - 3, (rows, 2))
    names = dict(zip(("train", "valid", "test"), splits, strict=True)) if kind != "bare" else {}
    return GraphData.from_arrays(edges, nodes, directed=kind in ("directed", "typed"), name=kind, **fields, **names)


KINDS = ["plain", "directed", "sparse", "weighted", "multilabel", "bare", "typed"]
SPECIAL = [
    ("directed", {"direction": "both"}),
    ("plain", {"self_loops": "add"}),
    ("directed", {"self_loops": "remove"}),
]


@pytest.mark.parametrize(("kind", "options"), [(kind, {}) for kind in KINDS] + SPECIAL, ids=str)
def test_the_files_are_those_of_the_source(tmp_path, kind, options):
    graph = graph_of(kind)
    partition_graph(graph, 2, tmp_path / "two", method="libra", seed=3, **options)
    expected = partition_graph(graph, 3, tmp_path / "expected", method="libra", seed=3, **options)
    found = repartition(tmp_path / "two", 3, tmp_path / "three")
    assert found["parts"] == expected["parts"]  # sizes and checksums of every file
    changing = {"seconds", "phase_seconds", "peak_rss_bytes", "sha256"}
    changing.add("edge_report")
    assert {k: v for k, v in found.items() if k not in changing} == {
        k: v for k, v in expected.items() if k not in changing
    }
    back = repartition(tmp_path / "three", 2, tmp_path / "back")
    assert back["parts"] == read_manifest(tmp_path / "two")["parts"]


def test_a_place_that_is_taken_and_a_damaged_part_are_refused(tmp_path):
    partition_graph(graph_of("plain"), 2, tmp_path / "two")
    with pytest.raises(InputError, match="exists already"):
        repartition(tmp_path / "two", 3, tmp_path / "two")
    (tmp_path / "two" / "part-1" / "feats.npy").write_bytes(b"")
    with pytest.raises(PartitionFormatError, match=r"feats\.npy"):
        repartition(tmp_path / "two", 3, tmp_path / "three")
    assert not (tmp_path / "three").exists()
