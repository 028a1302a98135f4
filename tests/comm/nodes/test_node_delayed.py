"""Late and narrow rows between nodes: those of the flat schedule in the same epochs, sums equal to rounding."""

import numpy as np
import pytest
from cut_graphs import broadcast_and_reduce, dist_graph, random_graph

from distgnn.comm import make_bins
from distgnn.comm.nodes import NodeDelayed, find_nodes, make_node_plan

NODES = {"exchange": "node", "ranks_per_node": 2}
LATE = {
    "cd-1": {"algorithm": "cd-1"},
    "cd-3": {"algorithm": "cd-3", "late_row_average": 0.5},
    "copies": {"algorithm": "cd-2", "update": "copies"},
}


def inputs(late, dtype, epoch: int) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng([late.transport.rank, epoch])
    plan = late.plan if not isinstance(late, NodeDelayed) else late.node_plan.flat
    shapes = (plan.num_owned, 7), (plan.num_target_halos, 7)
    return random.standard_normal(shapes[0]).astype(dtype), random.standard_normal(shapes[1]).astype(dtype)


@pytest.mark.mpi(3, 4)
@pytest.mark.parametrize("name", LATE)
def test_rows_count_in_the_epochs_of_the_flat_schedule(comm, name):
    data, options = random_graph(3), LATE[name]
    flat = dist_graph(data, comm, exchange="flat", **options).exchanges
    by_node = dist_graph(data, comm, **NODES, **options).exchanges
    for one, other in zip(flat.delayed, by_node.delayed, strict=True):
        for epoch in range(8):
            found = broadcast_and_reduce(other.at(0, epoch), *inputs(other, np.float64, epoch))
            expected = broadcast_and_reduce(one.at(0, epoch), *inputs(one, np.float64, epoch))
            np.testing.assert_array_equal(found[0], expected[0])
            np.testing.assert_allclose(found[1], expected[1], rtol=1e-12, atol=1e-12)  # sums in another order
    flat.drain()
    by_node.drain()


@pytest.mark.mpi(4)
@pytest.mark.parametrize(("algorithm", "wire"), [("cd-2", "bfloat16"), ("cd-2", "int4"), ("cd-0", "int8")])
def test_narrow_rows_are_those_of_plain_messages_whoever_leads(comm, algorithm, wire):
    data, options = random_graph(3), {"algorithm": algorithm, "wire": wire, "dtype": "float32"}
    flat = dist_graph(data, comm, exchange="flat", **options).exchanges
    by_node = dist_graph(data, comm, **NODES, **options).exchanges
    late, one = by_node.delayed[0], flat.delayed[0]
    plan = make_node_plan(flat.exact[0].plan, flat.transport, find_nodes(comm, 2).shifted(1))
    bins = make_bins(plan.with_near, late.delay or 1, comm, like=plan.flat)
    shifted = NodeDelayed(plan, flat.transport, late.flat_bins, bins, late.delay, late.warmup, flat.wire(wire, 0))
    for epoch in range(6):
        found = broadcast_and_reduce(late.at(0, epoch, 7), *inputs(late, np.float32, epoch))
        again = broadcast_and_reduce(shifted.at(0, epoch, 7), *inputs(late, np.float32, epoch))
        expected = broadcast_and_reduce(one.at(0, epoch, 7), *inputs(one, np.float32, epoch))
        np.testing.assert_array_equal(found[0], expected[0])
        np.testing.assert_array_equal(again[0], found[0])
        np.testing.assert_array_equal(again[1], found[1])
    for exchange in (flat, by_node, shifted):
        exchange.drain()
