"""What a channel holds: rows as they arrived or widened, averaged or not."""

import numpy as np
import pytest
from cut_graphs import broadcast_and_reduce, dist_graph, random_graph

from distgnn.comm import DelayedExchange, make_bins

WIDTH = 24
BYTES = {"bfloat16": 2 * WIDTH, "int4": WIDTH // 2 + 4}  # of a row


class WideDelayed(DelayedExchange):
    """Rows are widened when they arrive, and held so."""

    holds_codes = False


@pytest.mark.mpi(3)
@pytest.mark.parametrize("wire", ["bfloat16", "int4"])
@pytest.mark.parametrize("delay", [0, 1, 3])
def test_rows_held_as_they_arrived_are_those_that_were_widened_then(comm, wire, delay):
    graph = dist_graph(random_graph(3), comm, dtype="float32")
    bins = make_bins(graph.local.plan, max(delay, 1), comm)
    settings = graph.exchange, bins, delay, min(delay, 1), graph.exchanges.wire_of(wire, 0)
    coded, wide = DelayedExchange(*settings), WideDelayed(*settings)
    random = np.random.default_rng(comm.rank)
    for epoch in range(8):
        shapes = (graph.num_owned, WIDTH), (graph.local.num_target_halos, WIDTH)
        inputs = [random.standard_normal(shape).astype(np.float32) for shape in shapes]
        found, expected = (broadcast_and_reduce(one.at(0, epoch), *inputs) for one in (coded, wide))
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one, other)
    sets = sum(one.buffer_bytes() - sum(len(c.sent) for c in one._channels.values()) for one in (coded, wide))
    received = graph.local.num_source_halos + len(graph.local.plan.reduce_rows)
    held = (2 if delay else 1) * BYTES[wire]  # and those to come
    assert sets == received * (held + BYTES[wire] + 4 * WIDTH)
    for one in (coded, wide):
        one.drain()


@pytest.mark.mpi(3)
def test_smoothing_is_a_moving_average_of_what_arrives(comm):
    graph = dist_graph(random_graph(3), comm, algorithm="cd-1", late_row_average=0.75)
    late = graph.forward_arcs.delayed
    expected = 0.0
    for epoch in range(6):
        rows = np.full((graph.num_owned, 8), float(epoch + 1))
        sources, _ = broadcast_and_reduce(late.at(0, epoch), rows, np.zeros((graph.local.num_target_halos, 8)))
        if epoch == 0:
            expected = 1.0  # the warm-up epoch
        elif epoch > 1:  # what was sent in the last epoch arrives
            expected = 0.75 * expected + 0.25 * epoch
        np.testing.assert_allclose(sources, expected, rtol=1e-14)
    late.drain()
