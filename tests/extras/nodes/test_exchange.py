"""The node-aware exchange brings the flat one's rows and sums, once per node, whoever leads; and training with it."""

import numpy as np
import pytest
from cut_graphs import broadcast_and_reduce, dist_graph, random_cut, random_graph
from trainers import trainer_of

from distgnn.config import ModelConfig
from distgnn.extras.nodes.exchange import NodeExchange, Nodes, make_node_plan
from distgnn.partition import PartitionBook, VertexCut

NODES = {"ranks_per_node": 2}


def inputs(graph, width: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng([graph.rank, seed])
    shapes = (graph.num_owned, width), (graph.plan.num_target_halos, width)
    return random.standard_normal(shapes[0]), random.standard_normal(shapes[1])


@pytest.mark.mpi(3, 4)
def test_rows_are_those_of_plain_messages_and_sums_equal_to_rounding(comm):
    data = random_graph(3)
    graph, by_node = dist_graph(data, comm), dist_graph(data, comm, **NODES)
    assert isinstance(by_node.exchange, NodeExchange)
    pairs = (graph.exchange, by_node.exchange), (graph.transposed_exchange, by_node.transposed_exchange)
    for flat, exchange in pairs:
        for width in (1, 8, 8, 8, 1):  # slots in turn
            rows, _ = inputs(graph, width, width)
            targets = np.random.default_rng(comm.rank).standard_normal((flat.plan.num_target_halos, width))
            one, other = broadcast_and_reduce(flat, rows, targets), broadcast_and_reduce(exchange, rows, targets)
            np.testing.assert_array_equal(other[0], one[0])
            np.testing.assert_allclose(other[1], one[1], rtol=1e-12, atol=1e-12)  # float64 sums in another order


@pytest.mark.mpi(4)
def test_the_bits_do_not_depend_on_who_leads(comm):
    graph = dist_graph(random_graph(3), comm)
    rows, targets = inputs(graph, 8)
    found = []
    for shift in (0, 0, 1, 2):
        plan = make_node_plan(graph.plan, graph.comm, Nodes(4, 3, shift))  # of three ranks and of one
        found.append(broadcast_and_reduce(NodeExchange(plan, graph.transport), rows, targets))
    for again in found[1:]:
        np.testing.assert_array_equal(again[0], found[0][0])
        np.testing.assert_array_equal(again[1], found[0][1])


@pytest.mark.mpi(4)
@pytest.mark.parametrize("split_arcs", [False, True])
def test_a_row_crosses_once_per_node(comm, split_arcs):
    """As many rows as the same cut exchanges where each node is one part."""
    data = random_graph(3)
    edges = data.edge_list()
    cut = random_cut(edges, 4, split_arcs=split_arcs)
    graph = dist_graph(data, comm, cut, **NODES)
    back = None if cut.reverse_part is None else cut.reverse_part // 2
    whole = PartitionBook(edges, VertexCut(2, cut.edge_part // 2, cut.owner // 2, back))
    graph.transport.start_step()
    broadcast_and_reduce(graph.exchange, *inputs(graph, 8))
    far = np.arange(4) // 2 != comm.rank // 2
    assert comm.allreduce(int(graph.transport.sent_to[far].sum())) == 8 * 8 * whole.exchange_rows


@pytest.mark.mpi(4)
@pytest.mark.parametrize("model", [ModelConfig("sage", 8, 3), ModelConfig("gat", 8, 2)], ids=["sage", "gat"])
def test_losses_are_those_of_plain_messages_and_the_same_bits_again(comm, model):
    graphs = (dist_graph(random_graph(3), comm, **options) for options in ({}, NODES, NODES))
    plain, once, again = (trainer_of(graph, model, epochs=4).fit().losses for graph in graphs)
    assert once == again == pytest.approx(plain, rel=1e-9)  # float64 sums in another order, and Adam
