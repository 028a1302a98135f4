import pytest

from distgnn.datasets import load_graph
from distgnn.errors import InputError


def test_plain_folders_below_the_data_root_have_names(graph_folder, monkeypatch):
    assert load_graph("small", graph_folder.parent).num_nodes == 6
    monkeypatch.setenv("DISTGNN_DATA", str(graph_folder.parent))
    assert load_graph("small").num_nodes == 6


def test_a_path_comes_before_a_name(graph_folder, monkeypatch, tmp_path):
    monkeypatch.chdir(graph_folder.parent)
    assert load_graph("small", tmp_path / "nowhere").num_nodes == 6


def test_unknown_names_list_the_known(graph_folder):
    with pytest.raises(
        InputError,
        match=r"no graph 'smal' \(did you mean small\?\) .*looked in .*ogbn-products.* small, or a generator rmat:",
    ):
        load_graph("smal", graph_folder.parent)


def test_known_names_tell_how_to_fetch(tmp_path):
    with pytest.raises(InputError, match="distgnn download ogbn-arxiv --data-root"):
        load_graph("ogbn-arxiv", tmp_path)
    with pytest.raises(InputError, match=r"distgnn download cora --data-root .* or name the folder"):
        load_graph("cora", tmp_path)


def test_a_file_that_is_not_there_is_no_name(tmp_path):
    with pytest.raises(InputError, match=r"^edges\.csv\.gz: no such file \(looked in edges\.csv\.gz, "):
        load_graph("edges.csv.gz", tmp_path)


def test_a_folder_of_something_else_is_said_to_be_one(tmp_path):
    with pytest.raises(InputError, match="is a folder without a graph"):
        load_graph(str(tmp_path))
