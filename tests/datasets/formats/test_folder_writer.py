"""Folders are overwritten where they are graph folders and nothing else."""

import numpy as np
import pytest

from distgnn.datasets import load_graph
from distgnn.errors import InputError


@pytest.mark.parametrize(
    ("name", "says"), [(".", r"graph\.json: no such file\): it is left alone"), ("small", "not one of ours")]
)
def test_a_folder_with_something_else_in_it_is_never_overwritten(name, says, small_graph, graph_folder):
    mine = graph_folder.parent / name / "mine.txt"
    mine.write_text("x")
    with pytest.raises(InputError, match=says):
        small_graph.save(mine.parent, overwrite=True)
    assert mine.is_file()


def test_a_graph_can_be_saved_over_the_folder_it_is_mapped_from(graph_folder):
    graph = load_graph(str(graph_folder))
    graph.save(graph_folder, overwrite=True)
    assert np.array_equal(load_graph(str(graph_folder)).edges, graph.edges)
