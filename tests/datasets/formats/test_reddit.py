"""Reddit's files and GraphSAINT's folders: each edge once, the published split, damage by its file."""

import numpy as np
import pytest
import scipy.sparse as sp
from valid_graphs import write_reddit

from distgnn.datasets import load_graph
from distgnn.datasets.findings.findings import Findings
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
    assert not graph.directed and graph.edge_list().num_arcs == 5
    assert sorted(graph.edges.tolist()) == [[0, 1], [1, 2], [3, 3]]
    assert (graph.num_classes, graph.num_feats) == (41, 3)
    assert [graph.train.tolist(), graph.valid.tolist(), graph.test.tolist()] == [[0, 3], [1], [2]]


@pytest.mark.parametrize(
    ("adjacency", "changes", "says"),
    [
        (np.triu(PATH), {}, r"reddit_graph\.npz: the graph is not symmetric"),
        (PATH, {"node_types": np.array([1])}, "node_types"),
        (PATH, {"label": np.array([0, np.inf, 2, 2])}, r"reddit_data\.npz: labels: row 1 is infinite"),
    ],
)
def test_damage_is_named(adjacency, changes, says, reddit_folder):
    folder = reddit_folder(adjacency, **changes)
    with pytest.raises(GraphFormatError, match=says):
        load_graph(str(folder))
    (folder / "reddit_data.npz").unlink()
    with pytest.raises(InputError, match=r"reddit_data\.npz: no such file"):
        load_graph(str(folder))


def test_a_folder_of_graphsaint(tmp_path):
    matrix = sp.coo_matrix((np.ones(5), ([0, 1, 2, 3, 1], [1, 2, 3, 0, 3])), (4, 4))
    sp.save_npz(tmp_path / "adj_full.npz", (matrix + matrix.T).tocsr())
    np.save(tmp_path / "feats.npy", np.ones((4, 3)))
    (tmp_path / "class_map.json").write_text('{"0": 1, "1": 0, "2": 1, "3": 0}')
    (tmp_path / "role.json").write_text('{"tr": [0, 1], "va": [2], "te": [3]}')
    graph = load_graph(str(tmp_path), findings=Findings())
    assert (graph.num_edges, graph.directed, graph.labels.tolist()) == (5, False, [1, 0, 1, 0])
    assert (graph.train.tolist(), graph.test.tolist(), graph.num_feats) == ([0, 1], [3], 3)
    for name, text in (("role.json", '{"tr": [1%030d], "va": [], "te": []}'), ("class_map.json", '{"1%030d": 1}')):
        whole = (tmp_path / name).read_text()
        (tmp_path / name).write_text(text % 0)
        with pytest.raises(GraphFormatError, match=name):
            load_graph(str(tmp_path))
        (tmp_path / name).write_text(whole)
