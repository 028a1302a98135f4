"""All laws on real graphs, and the numbers that PartitionBook reports against slow obvious numpy."""

import numpy as np
import pytest

from distgnn.datasets import load_graph
from distgnn.partition import PartitionBook, cut_edges, load_part, partition_graph

from .core.test_local_graph import every_law


@pytest.mark.parametrize("direction", ["stored", "both", "reversed"])
@pytest.mark.parametrize("name", ["cora", "citeseer"])
def test_laws_hold_on_small_real_graphs(name, direction, data_root):
    edges = load_graph(name, data_root).edge_list(direction)
    every_law(edges, cut_edges(edges, 4))


@pytest.mark.slow
def test_laws_hold_on_a_large_real_graph(data_root):
    edges = load_graph("slashdot", data_root).edge_list("stored")
    every_law(edges, cut_edges(edges, 8, "libra"))


@pytest.mark.parametrize("num_parts", [8, 32])
def test_replication_factor_of_libra_on_arxiv(num_parts, data_root):
    """2.16 / 3.02 are Libra's own over a shuffled stream (measured elsewhere); the limit on arcs may cost 1 %."""
    edges = load_graph("ogb/ogbn_arxiv", data_root).edge_list("both")
    book = PartitionBook(edges, cut_edges(edges, num_parts, "libra"))
    held = np.zeros((edges.num_nodes, num_parts), dtype=bool)
    held[edges.src, book.cut.edge_part] = held[edges.dst, book.cut.edge_part] = True
    counts = held.sum(axis=1)
    assert book.replication_factor == pytest.approx(counts[counts > 0].mean())
    assert book.replication_factor == pytest.approx({8: 2.16, 32: 3.02}[num_parts], rel=0.01)
    assert max(book.edge_balance, book.owned_balance) <= 1.03


def test_a_real_graph_through_the_folder(data_root, tmp_path):
    """Features, labels and splits of citeseer (isolated and unlabelled vertices) arrive at their owners."""
    graph = load_graph("citeseer", data_root)
    partition_graph(graph, 3, tmp_path / "parts")
    feats, labels = np.zeros((graph.num_nodes, graph.num_feats), dtype=np.float32), np.full(graph.num_nodes, -9)
    masks = {split: np.zeros(graph.num_nodes, dtype=bool) for split in ("train", "valid", "test")}
    for part in range(3):
        local = load_part(tmp_path / "parts", part)
        ids = local.global_ids[: local.num_owned]
        feats[ids], labels[ids] = local.feats.toarray(), local.labels
        for split, mask in masks.items():
            mask[ids] = getattr(local, f"{split}_mask")
    np.testing.assert_array_equal(feats, graph.feats.toarray())
    np.testing.assert_array_equal(labels, graph.labels)
    for split, mask in graph.split_masks().items():
        np.testing.assert_array_equal(masks[split], mask)


@pytest.mark.slow
def test_no_part_of_a_web_graph_exchanges_much_more_than_the_others(data_root):
    """Without a price on rows the largest of 32 has 2.5 times the mean (measured 1.22 with it)."""
    edges = load_graph("web-notredame", data_root).edge_list("both")
    book = PartitionBook(edges, cut_edges(edges, 32, effort="fast"))
    assert book.max_rank_rows <= 1.35 * 2 * book.exchange_rows / 32
    assert book.replication_factor <= 1.035
    assert max(book.edge_balance, book.owned_balance, book.copies_balance) <= 1.05
