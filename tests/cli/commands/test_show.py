"""`info` and `models`: what a partition folder has, and how layers run. `cache` is tested in tests/fitting."""

import json

from distgnn.partition import partition_graph


def test_a_partition_folder(ran, refused, two_parts, tmp_path):
    shown = ran("info", two_parts)
    assert "small: 40 vertices, " in shown and "Rows per pair of ranks" in shown and "replication factor" in shown
    assert json.loads(ran("info", two_parts, "--json"))["num_parts"] == 2
    compared = ran("info", two_parts, "--against-libra")
    assert "Against Libra (shuffled)" in compared and "this / libra" in compared
    refused("info", tmp_path / "nowhere", says="nowhere")


def test_a_graph_of_several_types(ran, tmp_path):
    partition_graph("typed:nodes=900,classes=4,noise=0.5,mixing=0.1", 1, tmp_path / "parts", say=lambda line: None)
    shown = ran("info", tmp_path / "parts")
    assert "paper  train     171" in shown and "paper rev_writes author  arcs" in shown


def test_layers_by_library(ran, refused):
    rows = json.loads(ran("models", "dgl", "--json"))
    assert rows and {row["library"] for row in rows} == {"dgl"}
    shown = ran("models")
    assert all(
        name in shown for name in ("GraphConv", "GCNConv", "Beside the plain library", "Refused on several ranks")
    )
    refused("models", "jax", says="unknown library 'jax'")
