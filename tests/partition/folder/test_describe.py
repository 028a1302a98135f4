"""What a folder says of its cut: roles of copies, balances, rows between groups."""

import json

import numpy as np
import pytest

from distgnn.datasets import load_graph
from distgnn.partition import PartitionBook, cut_edges, describe, read_manifest, write_partition
from distgnn.partition.folder.describe import rows_between_groups


def test_roles_are_the_books(tmp_path):
    graph = load_graph("rmat:scale=8,edge_factor=4,feats=3,classes=2,seed=1")
    edges = graph.edge_list()
    cut = cut_edges(edges, 4, "libra")
    write_partition(graph, edges, cut, tmp_path / "parts")
    counts, facts = PartitionBook(edges, cut).halo_counts, describe(tmp_path / "parts")
    found = [[part[role] for role in ("source_only", "both_roles", "target_only")] for part in facts["parts"]]
    assert found == counts.sum(axis=1).tolist()
    assert list(facts["roles"].values()) == counts.sum(axis=(0, 1)).tolist()


def test_describe_adds_up(folder):
    summary, manifest = describe(folder), read_manifest(folder)
    json.dumps(summary)
    assert sum(part["sent_rows"] for part in summary["parts"]) == summary["exchange_rows"] == manifest["exchange_rows"]
    assert sum(map(sum, summary["pair_rows"])) == summary["exchange_rows"]
    assert max(part["sent_rows"] + part["received_rows"] for part in summary["parts"]) == summary["max_rank_rows"]
    assert sum(part["train"] for part in summary["parts"]) == summary["graph"]["train"] > 0
    assert summary["balances"]["arcs"] == pytest.approx(summary["edge_balance"], abs=1e-6)
    assert summary["balances"]["rows"] == pytest.approx(summary["copies_balance"], abs=1e-6)
    assert sum(part["bytes"] for part in summary["parts"]) == sum(f.stat().st_size for f in folder.rglob("*.npy"))


def test_rows_between_groups_leave_out_those_inside():
    assert rows_between_groups(np.arange(16).reshape(4, 4), 2) == 2 + 3 + 6 + 7 + 8 + 9 + 12 + 13
