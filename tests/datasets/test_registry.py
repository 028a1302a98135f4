"""Graphs by name, path or folder; what is nowhere is said with what to do."""

import pytest

from distgnn.datasets import load_graph
from distgnn.errors import InputError


def test_plain_folders_below_the_data_root_have_names_and_a_path_comes_first(graph_folder, monkeypatch, tmp_path):
    assert load_graph("small", graph_folder.parent).num_nodes == 6
    monkeypatch.setenv("DISTGNN_DATA", str(graph_folder.parent))
    assert load_graph("small").num_nodes == 6
    monkeypatch.chdir(graph_folder.parent)
    assert load_graph("small", tmp_path / "nowhere").num_nodes == 6


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("smal", r"'smal' \(did you mean small\?\) .*looked in .*ogbn-products.* small, or a generator rmat:"),
        ("ogbn-arxiv", "distgnn download ogbn-arxiv --data-root"),
        ("cora", "distgnn download cora --data-root .* or name the folder"),
        ("edges.csv.gz", r"^edges\.csv\.gz: no such file \(looked in edges\.csv\.gz, "),
        (".", "is a folder without a graph"),
        *[(source, "looked in") for source in ("nowhere", "nowhere/at/all", "/nowhere", "", "cora:scale=3")],
    ],
)
def test_what_is_nowhere_is_said_with_what_to_do(source, says, graph_folder, monkeypatch):
    (graph_folder.parent / "empty").mkdir()
    monkeypatch.chdir(graph_folder.parent / "empty")
    with pytest.raises(InputError, match=says):
        load_graph(source, graph_folder.parent)
