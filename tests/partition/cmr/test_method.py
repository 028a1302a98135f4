"""Cluster - merge - refine: each step's promise, the same bytes for any number of threads, and what it buys."""

import numpy as np
import pytest

from distgnn.config.cut import EFFORTS as NAMES
from distgnn.datasets import GraphData, load_graph
from distgnn.errors import InputError
from distgnn.kernels.runtime import threads
from distgnn.partition import PartitionBook, cut_edges, partition_graph, read_manifest
from distgnn.partition.cmr.levels import finest_level, share_inside
from distgnn.partition.cmr.method import CLUSTERED, EFFORTS, Effort, improve
from distgnn.partition.core.edges import EdgeArrays, endpoint_degrees
from distgnn.partition.core.vertex_cut import part_shares
from distgnn.partition.on_disk.run import EDGE_BYTES
from distgnn.partition.refinement.cut_state import arc_limit
from distgnn.partition.repartition import repartition

from ..graphs import core_and_islands

IN_THREADS = ("sorted_edges", "edges", "part_masks")
COMMUNITIES, HUBS = "communities:nodes=1000,seed=1", "rmat:scale=9,feats=0,classes=0,seed=1"


@pytest.mark.parametrize("method", ["libra", "random"])
def test_refining_any_method_makes_copies_fewer(method, planted):
    before = PartitionBook(planted, cut_edges(planted, 8, method))
    after = PartitionBook(planted, cut_edges(planted, 8, method, refine=True))
    assert after.replication_factor - 1 < 0.95 * (before.replication_factor - 1)
    assert after.edge_balance <= 1.03 and after.owned_balance <= 1.05


def test_the_best_cut_that_was_met_is_kept(monkeypatch):
    """A path of three edges: V-cycles make a third copy, take it away, make it again."""
    src = np.arange(3, dtype=np.int32)
    edges, worse, better = EdgeArrays(src, src + 1, 4, True, 6), [0, 1, 0], [0, 0, 1]
    found = iter(np.array([worse, better, worse], dtype=np.int16))
    monkeypatch.setattr("distgnn.partition.cmr.method.v_cycle", lambda *_: next(found))
    monkeypatch.setattr("distgnn.partition.cmr.method.even_inner", lambda edges, parts, *_: parts)
    best = improve(edges, np.zeros(3, dtype=np.int16), [], endpoint_degrees(edges), part_shares(2), Effort(3, 0))
    assert best.tolist() == better


@pytest.mark.parametrize(
    ("graph", "large", "in_turn", "two_way"),
    [
        (COMMUNITIES, False, 0, True),
        (COMMUNITIES, True, 0, True),
        (HUBS, True, 10**6, True),
        (HUBS, True, 0, True),
        (HUBS, False, 10**6, False),
    ],
)
def test_the_same_bytes_for_any_number_of_threads(
    graph, large, in_turn, two_way, as_large, monkeypatch, set_num_threads
):
    """Clusters merged in blocks, judged in parallel, as in large graphs; and one after the other."""
    edges = load_graph(graph).edge_list()
    edges.two_way = two_way
    if large:
        as_large()
    monkeypatch.setattr(threads, "THREAD_WORK", 1)
    monkeypatch.setattr("distgnn.partition.cmr.label_propagation.SMALL", 0)
    monkeypatch.setattr("distgnn.partition.refinement.merge.IN_TURN", in_turn)
    monkeypatch.setattr("distgnn.partition.refinement.edge_moves.FEW_EDGES", 1)
    for module in ("kernels.runtime.threads", *(f"partition.core.{name}" for name in IN_THREADS)):
        monkeypatch.setattr(f"distgnn.{module}.FEW_EDGES", 0)
    cuts = []
    for count in (1, 8):
        set_num_threads(count)
        cuts.append(cut_edges(edges, 5, "cmr"))
    for name in ("edge_part", "owner", "order"):
        np.testing.assert_array_equal(getattr(cuts[1], name), getattr(cuts[0], name))


def test_vertices_of_large_graphs_move(power_law, as_large, monkeypatch):
    """After single edges all edges of a vertex: fewer copies than with edges alone, arcs within their limit."""
    as_large()
    moved = PartitionBook(power_law, cut_edges(power_law, 8, "cmr"))
    monkeypatch.setattr("distgnn.partition.cmr.method.move_vertices", lambda rows, parts, *others: parts)
    stayed = PartitionBook(power_law, cut_edges(power_law, 8, "cmr"))
    assert moved.replication_factor < stayed.replication_factor
    assert moved.edge_balance <= 1.03


def test_clusters_of_large_graphs_move_where_there_are_some(power_law, as_large, monkeypatch):
    """Fewer copies at the same balances; what has no clusters is cut flat."""
    clustered = core_and_islands()
    assert share_inside(power_law, finest_level(power_law, endpoint_degrees(power_law), 8)) < CLUSTERED
    labels = finest_level(clustered, endpoint_degrees(clustered), 8)
    assert CLUSTERED < share_inside(clustered, labels) == np.mean(labels[clustered.src] == labels[clustered.dst])
    as_large()
    found = {}
    for share in (0.0, CLUSTERED, 1.1):
        monkeypatch.setattr("distgnn.partition.cmr.method.CLUSTERED", share)
        found[share] = [PartitionBook(edges, cut_edges(edges, 8, "cmr")) for edges in (clustered, power_law)]
    copies = {share: [book.replication_factor for book in books] for share, books in found.items()}
    assert copies[CLUSTERED] == [copies[0.0][0], copies[1.1][1]] and copies[0.0][1] != copies[1.1][1]
    assert copies[0.0][0] - 1 < 0.85 * (copies[1.1][0] - 1)
    book = found[0.0][0]
    assert book.edge_balance <= 1.031 and book.owned_balance <= 1.05 and book.copies_balance <= 1.05


# Sparse, and of many parts; docs/benchmarks has the table of all graphs.
@pytest.mark.parametrize(("name", "num_parts"), [("citeseer", 8), ("cora", 32)])
def test_fewer_rows_than_libra_at_the_balances(name, num_parts, data_root):
    """Arcs within 3 % of the mean, owned vertices within 5 %, rows within 30 %; and never more rows than Libra's."""
    edges = load_graph(name, data_root).edge_list("both")
    ours = PartitionBook(edges, cut_edges(edges, num_parts, "cmr"))
    libra = PartitionBook(edges, cut_edges(edges, num_parts, "libra"))
    assert ours.exchange_rows < libra.exchange_rows and ours.replication_factor < libra.replication_factor
    assert ours.owned_balance <= 1.05 and ours.copies_balance <= 1.3
    assert ours.edge_balance <= 1.03 or (ours.num_arcs <= arc_limit(edges, part_shares(num_parts), 1.03)).all()
    assert (ours.num_arcs > 0).all()


def copies_of(edges, **options):
    return [PartitionBook(edges, cut_edges(edges, 6, effort=effort, **options)).replication_factor for effort in NAMES]


@pytest.mark.parametrize("options", [{"method": "cmr"}, {"method": "libra", "refine": True}], ids=lambda o: o["method"])
def test_more_effort_makes_fewer_copies(planted, options):
    fast, normal, best = copies_of(planted, **options)
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


@pytest.mark.parametrize(
    ("effort", "method", "says"),
    [
        ("high", "cmr", r"'high'.*fast, normal"),
        ("best", "libra", "libra has no use for effort best: choose cmr, or refine"),
    ],
)
def test_an_effort_that_there_is_not(effort, method, says):
    with pytest.raises(InputError, match=says):
        partition_graph(GraphData.from_arrays(np.array([[0, 1]]), 2), 2, "nowhere", effort=effort, method=method)
