"""Objects of other libraries become the graph that the same arrays give."""

import pprint
from decimal import Decimal

import networkx
import numpy as np
import pytest
import scipy.sparse
import torch

from distgnn.datasets import GraphData, as_graph_data, load_graph
from distgnn.datasets.findings.findings import Findings
from distgnn.errors import GraphWarning, InputError
from distgnn.partition import partition_graph, read_manifest

SOURCES, TARGETS = [0, 1, 2, 2], [1, 2, 0, 3]
PAIRS = np.array([SOURCES, TARGETS]).T


def test_edges_come_in_either_shape():
    for edges in (PAIRS, PAIRS.T, (SOURCES, TARGETS), [SOURCES, TARGETS], torch.tensor(PAIRS.T), PAIRS.tolist()):
        assert GraphData.from_arrays(edges).edges.tolist() == PAIRS.tolist()
        assert as_graph_data(edges).edges.tolist() == PAIRS.tolist()


@pytest.mark.parametrize(
    ("edges", "found"),
    [
        ([[0, 1], [2, 3]], [[0, 1], [2, 3]]),
        (([0, 1], [2, 3]), [[0, 2], [1, 3]]),
        (np.array([[4], [2]]), [[4, 2]]),
        (torch.zeros(2, 0, dtype=torch.long), []),
    ],
)
def test_small_arrays_of_edges(edges, found):
    assert GraphData.from_arrays(edges, 5).edges.tolist() == found


def test_tensors_of_any_float_type():
    feats = torch.arange(8).reshape(4, 2)
    for dtype in (torch.float32, torch.bfloat16, torch.float64):
        given = feats.to(dtype).requires_grad_()
        graph = GraphData.from_arrays(PAIRS, feats=given, labels=torch.tensor([0, 1, 0, 1]), train=torch.tensor([0]))
        assert graph.feats.tolist() == feats.tolist()
    assert graph.labels.tolist() == [0, 1, 0, 1]


def test_pyg_data():
    pyg = pytest.importorskip("torch_geometric.data")
    mask = torch.tensor([True, False, False, False])
    data = pyg.Data(x=torch.ones(4, 3), y=torch.tensor([0, 1, 1, 0]), edge_index=torch.tensor(PAIRS.T), train_mask=mask)
    data.edge_attr = torch.tensor([1.0, 2.0, 3.0, 4.0])
    graph = as_graph_data(data)
    assert graph.edges.tolist() == PAIRS.tolist() and graph.directed
    assert (graph.num_feats, graph.labels.tolist(), graph.train.tolist()) == (3, [0, 1, 1, 0], [0])
    assert graph.edge_weight.tolist() == [1, 2, 3, 4] and graph.edge_feats is None
    data.edge_attr = torch.ones(4, 2)
    assert as_graph_data(data).num_edge_feats == 2
    both = pyg.Data(edge_index=torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), num_nodes=4)
    halved = as_graph_data(both, directed=False)
    assert halved.edges.tolist() == [[0, 1], [1, 2]] and halved.num_nodes == 4


def test_pyg_refuses_no_edges():
    pyg = pytest.importorskip("torch_geometric.data")
    with pytest.raises(InputError, match="has no relation: no edges to read"):
        as_graph_data(pyg.HeteroData())
    with pytest.raises(InputError, match="no edge_index"):
        as_graph_data(pyg.Data(x=torch.ones(2, 1)))


@pytest.mark.parametrize("kind", ["Graph", "DiGraph", "MultiGraph", "MultiDiGraph"])
def test_networkx(kind):
    graph = getattr(networkx, kind)()
    graph.add_nodes_from("abcd")
    graph.add_edge("c", "a", weight=2.5)
    graph.add_edge("b", "d")
    found = as_graph_data(graph, weighted=True, feats=np.eye(4))
    assert found.directed == kind.endswith("DiGraph")
    pairs = found.edges.tolist() if found.directed else np.sort(found.edges, axis=1).tolist()
    assert sorted(pairs) == sorted([[2, 0], [1, 3]] if found.directed else [[0, 2], [1, 3]])
    assert sorted(found.edge_weight.tolist()) == [1, 2.5] and found.num_nodes == 4
    with pytest.warns(UserWarning, match=r"left out: edge attribute weight \(take it with weighted=True\)"):
        assert as_graph_data(graph).edge_weight is None
    assert as_graph_data(graph, weighted=False).edge_weight is None  # a warning would be an error


def attributed():
    graph = networkx.Graph()
    for node, place, label, mask in (("a", 1.0, 0, True), ("b", 2.0, 1, False)):
        graph.add_node(node, x=place, pair=[place, 0], y=label, train_mask=mask)
    graph.add_edge("b", "a", cost=3.0)
    return graph


def test_networkx_attributes_are_taken_by_name():
    graph = attributed()
    with pytest.warns(GraphWarning, match=r"left out: attribute pair$"):
        found = as_graph_data(graph, feats="x", labels="y", train="train_mask", edge_weight="cost", name="mine")
    assert (found.feats.tolist(), found.labels.tolist(), found.train.tolist()) == ([[1], [2]], [0, 1], [0])
    assert (found.edge_weight.tolist(), found.name) == ([3], "mine")
    with pytest.warns(
        UserWarning, match=r"left out: attribute x, attribute y \(take it with labels='y'\), attribute train_mask"
    ):
        assert as_graph_data(graph, feats="pair").feats.tolist() == [[1, 0], [2, 0]]
    with pytest.warns(GraphWarning, match=r"left out: attribute pair, edge attribute cost$"):
        assert as_graph_data(graph, feats=None, labels=None, train=None).feats is None


@pytest.mark.parametrize(
    ("feats", "message"), [("z", "feats: 'a' has no attribute 'z'"), ("pair", "'pair' has values of different len")]
)
def test_networkx_attributes_that_are_no_columns_are_refused(feats, message):
    graph = attributed()
    graph.nodes["b"]["pair"] = [1, 2, 3]
    with pytest.raises(InputError, match=message):
        as_graph_data(graph, feats=feats, labels="y", train="train_mask")


@pytest.mark.parametrize(
    "edges", [PAIRS, PAIRS.T, scipy.sparse.coo_matrix((np.ones(len(PAIRS)), PAIRS.T), shape=(9, 9))]
)
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
            return pyg.Data(edge_index=torch.tensor(PAIRS.T), x=torch.eye(9))

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
    data = OgbNodes(dgl.graph((SOURCES, TARGETS), num_nodes=4))
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
    with pytest.raises(
        InputError, match=r"ogbn-mine's get_idx_split\(\) has no train split of one graph: give the folder"
    ):
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

    graph = as_graph_data(OgbLinks(pyg.Data(edge_index=torch.tensor(PAIRS.T), num_nodes=4)))
    assert (graph.train_edges.tolist(), graph.valid_edges.tolist()) == (PAIRS.tolist(), [[0, 1]])
    assert graph.test_negatives.tolist() == [[3, 0], [3, 1]] and not graph.held_out


@pytest.mark.parametrize("value", [Decimal(1), object()])
def test_objects_that_are_no_numbers_are_refused(value):
    with pytest.raises(InputError, match=f"labels: a {type(value).__name__} is no number, text or row of numbers"):
        as_graph_data(PAIRS, labels=[value] * 4)


def test_what_is_no_graph_is_refused(small_graph):
    assert as_graph_data(small_graph) is small_graph
    with pytest.raises(InputError, match=r"no graph can be made of a set; give a GraphData, a dgl\.DGLGraph"):
        as_graph_data({1, 2})
    with pytest.raises(InputError, match="taken as it is"):
        as_graph_data(small_graph, name="other")
    loader = torch.utils.data.DataLoader([1, 2])
    with pytest.raises(InputError, match="a DataLoader; it gives batches, and here each step is on the whole graph"):
        as_graph_data(loader)
    with pytest.raises(InputError, match=r"a Linear; it is a model, and the graph comes first: fit\(graph, model\)"):
        as_graph_data(torch.nn.Linear(1, 1))


def test_load_and_partition_take_objects(tmp_path):
    assert load_graph(PAIRS.T).edges.tolist() == PAIRS.tolist()
    manifest = partition_graph(networkx.path_graph(6), 2, tmp_path / "parts", method="libra")
    assert manifest["num_parts"] == 2 and manifest == read_manifest(tmp_path / "parts")
    shown = f"{manifest}"
    assert shown.startswith("Manifest('networkx', num_parts=2, num_nodes=6, num_edges=5, method='libra'")
    assert len(shown) < 200 and pprint.pformat(manifest) == shown
