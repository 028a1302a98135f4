"""What a folder says of its roles, and beside Libra's cut."""

import pytest

from distgnn.datasets import load_graph
from distgnn.partition import PartitionBook, against_libra, cut_edges, describe, write_partition


@pytest.fixture(scope="module")
def cut_graph(tmp_path_factory):
    graph = load_graph("rmat:scale=8,edge_factor=4,feats=3,classes=2,seed=1")
    edges = graph.edge_list()
    cut = cut_edges(edges, 4, "libra")
    folder = tmp_path_factory.mktemp("cut") / "parts"
    write_partition(graph, edges, cut, folder)
    return edges, PartitionBook(edges, cut), folder


def test_roles_are_the_books(cut_graph):
    _, book, folder = cut_graph
    facts = describe(folder)
    found = [[part[role] for role in ("source_only", "both_roles", "target_only")] for part in facts["parts"]]
    assert found == book.halo_counts.sum(axis=1).tolist()
    assert list(facts["roles"].values()) == book.halo_counts.sum(axis=(0, 1)).tolist()


def test_against_libra_compares_two_cuts_of_one_graph(cut_graph):
    edges, book, folder = cut_graph
    facts = against_libra(folder, seed=5)
    other = PartitionBook(edges, cut_edges(edges, 4, "libra", seed=5))
    assert facts["this"]["replication_factor"] == pytest.approx(book.replication_factor, abs=1e-6)
    assert facts["libra"]["replication_factor"] == other.replication_factor
    assert facts["libra"]["exchange_rows"] == other.exchange_rows
    assert against_libra(folder)["this"]["exchange_rows"] == against_libra(folder)["libra"]["exchange_rows"]
