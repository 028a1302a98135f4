"""`--effort`: the same way, less far or further; kept in the manifest where it is not the usual one."""

import numpy as np
import pytest

from distgnn.config.cut import EFFORTS as NAMES
from distgnn.datasets import GraphData, load_graph
from distgnn.errors import InputError
from distgnn.partition import PartitionBook, cut_edges, partition_graph, read_manifest
from distgnn.partition.cmr.method import EFFORTS
from distgnn.partition.on_disk.run import EDGE_BYTES
from distgnn.partition.repartition import repartition


@pytest.fixture(scope="module")
def communities():
    return load_graph("communities:nodes=1500,seed=1").edge_list()


def copies_of(edges, **options):
    return [PartitionBook(edges, cut_edges(edges, 6, effort=effort, **options)).replication_factor for effort in NAMES]


@pytest.mark.parametrize("options", [{"method": "cmr"}, {"method": "libra", "refine": True}], ids=lambda o: o["method"])
def test_more_effort_makes_fewer_copies(communities, options):
    fast, normal, best = copies_of(communities, **options)
    assert fast >= normal >= best and fast > best


@pytest.mark.slow
def test_more_effort_makes_fewer_copies_of_large_graphs(as_large):
    as_large()
    edges = load_graph("rmat:scale=12,edge_factor=8,feats=0,classes=0,seed=1").edge_list()
    fast, normal, best = copies_of(edges)
    assert tuple(EFFORTS) == NAMES and fast > normal > best


def test_a_folder_says_its_effort_and_is_cut_again_with_it(tmp_path):
    graph = load_graph("communities:nodes=400,seed=1")
    for effort in NAMES:
        partition_graph(graph, 2, tmp_path / effort, effort=effort)
        assert read_manifest(tmp_path / effort).get("effort", "normal") == effort
    expected = partition_graph(graph, 6, tmp_path / "expected", effort="best")
    assert repartition(tmp_path / "best", 6, tmp_path / "again")["parts"] == expected["parts"]
    assert repartition(tmp_path / "fast", 6, tmp_path / "other", effort="best")["parts"] == expected["parts"]
    assert repartition(tmp_path / "fast", 6, tmp_path / "fast-6")["parts"] != expected["parts"]
    assert "effort" not in read_manifest(tmp_path / "normal")
    assert repartition(tmp_path / "best", 3, tmp_path / "libra", method="libra")["method"] == "libra"


def test_a_folder_whose_cut_has_no_effort_is_cut_again(tmp_path, monkeypatch):
    """On disk, and of a refined cut whose refinement the manifest does not ask for again."""
    source = "communities:nodes=300,seed=1"
    monkeypatch.setitem(EDGE_BYTES, "cmr", 10**12)  # nothing fits in memory
    said = []
    partition_graph(source, 2, tmp_path / "disk", effort="best", memory="8GB", say=said.append)
    assert "effort best makes no difference on disk: leave memory out, or raise it" in said
    partition_graph(source, 2, tmp_path / "refined", method="libra", refine=True, effort="best")
    manifest = read_manifest(tmp_path / "disk")
    assert manifest["method"] == "cmr" and "effort" not in manifest
    for name in ("disk", "refined"):
        assert "effort" not in repartition(tmp_path / name, 3, tmp_path / f"{name}-3")


def test_an_effort_that_there_is_not():
    graph = GraphData.from_arrays(np.array([[0, 1]]), 2)
    with pytest.raises(InputError, match=r"'high'.*fast, normal"):
        partition_graph(graph, 2, "nowhere", effort="high")
    with pytest.raises(InputError, match="libra has no use for effort best: choose cmr, or refine"):
        partition_graph(graph, 2, "nowhere", effort="best", method="libra")
