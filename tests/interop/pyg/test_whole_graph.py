"""PyG's utilities about all arcs of a graph: what one process gives, or one line, and no rank that waits."""

import pytest
import torch
from cut_graphs import dist_graph, random_graph, whole_graph

from distgnn.errors import InputError
from distgnn.interop.pyg.dispatch import register

utils = pytest.importorskip("torch_geometric.utils")


def of_one_process(data) -> torch.Tensor:
    arcs = whole_graph(data).edge_index.arcs
    return torch.stack([arcs.ids("source"), arcs.ids("target")])


@pytest.mark.mpi(3)
@pytest.mark.parametrize("method", ["edge", "node"])
def test_homophily_is_that_of_the_graph(comm, method):
    data = random_graph(3)
    graph = dist_graph(data, comm)
    register(graph)
    expected = utils.homophily(of_one_process(data), torch.as_tensor(data.labels), method=method)
    assert utils.homophily(graph.edge_index, graph.labels, method=method) == pytest.approx(expected, rel=1e-6)


@pytest.mark.mpi(3)
@pytest.mark.parametrize("loops", ["remove", "add"])
def test_self_loops_of_any_rank_are_found(comm, loops):
    graph = dist_graph(random_graph(3), comm, self_loops=loops)
    register(graph)
    assert utils.contains_self_loops(graph.edge_index) == (loops == "add")


REFUSED = {
    "assortativity": lambda index, y: utils.assortativity(index),
    "homophily": lambda index, y: utils.homophily(index, y, method="edge_insensitive"),
    "k_hop_subgraph": lambda index, y: utils.k_hop_subgraph(0, 1, index),
    "subgraph": lambda index, y: utils.subgraph([0, 1], index),
    "dropout_edge": lambda index, y: utils.dropout_edge(index, p=0.5),
    "dropout_node": lambda index, y: utils.dropout_node(index),
}


@pytest.mark.mpi(2)
@pytest.mark.parametrize("call", REFUSED.values(), ids=REFUSED)
def test_what_one_rank_cannot_know_is_refused(comm, call):
    graph = dist_graph(random_graph(3), comm)
    register(graph)
    with pytest.raises(InputError, match=r"cannot run on (the edge_index of a DistGraph|a graph that is cut)"):
        call(graph.edge_index, graph.labels)
    kept, _ = utils.dropout_edge(graph.edge_index, training=False)
    assert kept.arcs.num_arcs == graph.num_edges()
