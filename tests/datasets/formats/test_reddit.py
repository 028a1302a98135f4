import numpy as np
import pytest
from valid_graphs import write_reddit

from distgnn.datasets import load_graph
from distgnn.errors import GraphFormatError, InputError


@pytest.fixture
def reddit_folder(tmp_path):
    """A function that writes DGL's two files for a 4-vertex adjacency."""
    columns = {"feature": np.ones((4, 3)), "label": np.array([0, 40, 2, 2]), "node_types": np.array([1, 2, 3, 1])}
    columns["node_ids"] = np.arange(4)
    return lambda adjacency, **changes: write_reddit(tmp_path / "reddit", adjacency, **columns | changes)


PATH = np.array([[0, 1, 0, 0], [1, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 1]])


def test_each_edge_is_kept_once(reddit_folder):
    graph = load_graph("reddit", reddit_folder(PATH).parent)
    assert not graph.directed
    assert sorted(graph.edges.tolist()) == [[0, 1], [1, 2], [3, 3]]
    assert graph.edge_list().num_arcs == 5
    assert (graph.num_classes, graph.num_feats) == (41, 3)
    assert [graph.train.tolist(), graph.valid.tolist(), graph.test.tolist()] == [[0, 3], [1], [2]]


def test_damage_is_named(reddit_folder):
    folder = reddit_folder(np.triu(PATH))
    with pytest.raises(GraphFormatError, match=r"reddit_graph\.npz: the graph is not symmetric"):
        load_graph(str(folder))
    folder = reddit_folder(PATH, node_types=np.array([1]))
    with pytest.raises(GraphFormatError, match="node_types"):
        load_graph(str(folder))
    folder = reddit_folder(PATH, label=np.array([0, np.inf, 2, 2]))
    with pytest.raises(GraphFormatError, match=r"reddit_data\.npz: labels: row 1 is infinite"):
        load_graph(str(folder))
    (folder / "reddit_data.npz").unlink()
    with pytest.raises(InputError, match=r"reddit_data\.npz: no such file"):
        load_graph(str(folder))
