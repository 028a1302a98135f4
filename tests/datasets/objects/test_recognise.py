"""Objects of other libraries become the graph that the same arrays give."""

import networkx
import numpy as np
import pytest
import scipy.sparse
import torch

from distgnn.datasets import as_graph_data, load_graph
from distgnn.datasets.findings.findings import Findings
from distgnn.errors import InputError
from distgnn.partition import partition_graph, read_manifest

PAIRS = np.array([[0, 1], [1, 2], [2, 0], [2, 3]])
INDEX = torch.from_numpy(PAIRS.T.copy())


@pytest.mark.parametrize("edges", [PAIRS, PAIRS.T, scipy.sparse.coo_matrix((np.ones(4), PAIRS.T), shape=(9, 9))])
@pytest.mark.parametrize("name", ["edge_index", "edges", "adjacency"])
def test_a_dict_of_edges_and_columns(edges, name):
    found = as_graph_data({name: edges, "x": np.eye(9), "y": np.arange(9) % 2, "train_mask": np.arange(9) < 4})
    assert sorted(map(tuple, found.edges.tolist())) == sorted(map(tuple, PAIRS.tolist()))
    assert found.feats.shape == (9, 9) and found.num_classes == 2 and found.train.tolist() == [0, 1, 2, 3]
    for wrong in ({"x": np.eye(9)}, {"edges": edges, "adj": edges}):
        with pytest.raises(InputError, match="has its edges under one of edge_index, edges"):
            as_graph_data(wrong)


def test_a_data_set_of_one_graph_is_that_graph():
    pyg = pytest.importorskip("torch_geometric.data")

    class Sets(pyg.Dataset):
        count = 1

        def len(self):
            return self.count

        def get(self, place):
            return pyg.Data(edge_index=INDEX, x=torch.eye(9))

    assert as_graph_data(Sets()).edges.tolist() == PAIRS.tolist()
    Sets.count = 2
    with pytest.raises(InputError, match="Sets has 2 graphs: give one of them"):
        as_graph_data(Sets())


class OgbNodes:
    """As ogb.nodeproppred.DglNodePropPredDataset, whose only public base is object."""

    name = "ogbn-mine"

    def __init__(self, graph):
        self.graph = graph

    def __len__(self):
        return 1

    def __getitem__(self, place):
        return self.graph, torch.tensor([[0], [1], [1], [0]])

    def get_idx_split(self):
        return {"train": torch.tensor([0, 1]), "valid": torch.tensor([2]), "test": torch.tensor([3])}


def test_a_data_set_of_ogb_has_its_labels_and_split():
    dgl = pytest.importorskip("dgl")
    data = OgbNodes(dgl.graph(tuple(INDEX), num_nodes=4))
    graph = as_graph_data(data)
    assert (graph.name, graph.labels.tolist(), graph.train.tolist()) == ("ogbn-mine", [0, 1, 1, 0], [0, 1])
    assert (graph.valid.tolist(), graph.test.tolist()) == ([2], [3])
    assert as_graph_data(data, train_mask=torch.tensor([0, 0, 0, 1]) > 0).valid is None  # the user's own split
    alone = as_graph_data(data[0])
    assert (alone.labels.tolist(), alone.train) == ([0, 1, 1, 0], None)
    data.graph = {"edge_index": PAIRS.T, "edge_feat": None, "node_feat": np.ones((4, 2)), "num_nodes": 4}
    data.graph["node_year"] = np.full((4, 1), 2015)
    plain = as_graph_data(data, found := Findings())  # as NodePropPredDataset gives it
    assert found.lines()[-1] == "left out: node_year ([4, 1])"
    assert (plain.edges.tolist(), plain.num_feats, plain.test.tolist()) == (PAIRS.tolist(), 2, [3])
    data.get_idx_split = lambda: {"train": {"paper": torch.tensor([0])}}
    with pytest.raises(InputError, match=r"ogbn-mine's get_idx_split\(\) has no train split of one graph: give the"):
        as_graph_data(data)


def test_a_data_set_of_ogb_has_its_links():
    pyg = pytest.importorskip("torch_geometric.data")

    class OgbLinks(OgbNodes):
        name = "ogbl-collab"

        def __getitem__(self, place):
            return self.graph

        def get_edge_split(self):
            held = {"edge": torch.tensor([[0, 1]]), "edge_neg": torch.tensor([[3, 0], [3, 1]])}
            return {"train": {"edge": torch.tensor(PAIRS)}, "valid": held, "test": held}

    graph = as_graph_data(OgbLinks(pyg.Data(edge_index=INDEX, num_nodes=4)))
    assert (graph.train_edges.tolist(), graph.valid_edges.tolist()) == (PAIRS.tolist(), [[0, 1]])
    assert graph.test_negatives.tolist() == [[3, 0], [3, 1]] and not graph.held_out


@pytest.mark.parametrize(
    ("thing", "says"),
    [
        ({1, 2}, r"no graph can be made of a set; give a GraphData, a dgl\.DGLGraph"),
        (torch.utils.data.DataLoader([1]), "a DataLoader; it gives batches, and here each step is on the whole graph"),
        (torch.nn.Linear(1, 1), r"a Linear; it is a model, and the graph comes first: fit\(graph, model\)"),
    ],
)
def test_what_is_no_graph_is_refused(thing, says):
    with pytest.raises(InputError, match=says):
        as_graph_data(thing)


def test_load_and_partition_take_objects(small_graph, tmp_path):
    assert load_graph(PAIRS.T).edges.tolist() == PAIRS.tolist() and as_graph_data(small_graph) is small_graph
    with pytest.raises(InputError, match="taken as it is"):
        as_graph_data(small_graph, name="other")
    manifest = partition_graph(networkx.path_graph(6), 2, tmp_path / "parts", method="libra")
    assert manifest["num_parts"] == 2 and manifest == read_manifest(tmp_path / "parts")


def test_a_tuple_of_an_edge_index_and_columns_is_a_graph():
    feats = np.arange(8.0).reshape(4, 2)
    for labels in ((), ([0, 1, 1, 0],)):
        graph = as_graph_data((INDEX, feats, *map(np.array, labels)), Findings())
        assert graph.edges.tolist() == PAIRS.tolist() and graph.feats.tolist() == feats.tolist()
        assert (graph.labels is not None) == bool(labels)
    assert as_graph_data((PAIRS[:, 0], PAIRS[:, 1]), Findings()).feats is None  # two columns of ids
    with pytest.raises(InputError, match=r"found \[3, 2\]: do vertex ids start at 1"):
        as_graph_data((INDEX, feats[:3]), Findings())
