"""What is done with late rows: error feedback, smoothing, adaptive sending, and the bytes that each costs."""

import numpy as np
import pytest
from cut_graphs import both_legs, dist_graph, random_graph

WIDTH = 24


def inputs(graph, epoch: int = 0) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng([graph.rank, epoch])
    shapes = (graph.num_owned, WIDTH), (graph.local.num_target_halos, WIDTH)
    return tuple(random.standard_normal(shape).astype(np.float32) for shape in shapes)


@pytest.mark.mpi(2, 3)
@pytest.mark.parametrize("algorithm", ["cd-0", "cd-2"])
@pytest.mark.parametrize("wire", ["bfloat16", "int8", "int4"])
def test_error_feedback_keeps_the_sum_of_messages(comm, algorithm, wire):
    """The sum of what arrived differs from the sum of what was sent by one rounding, not by one per message."""
    graph = dist_graph(random_graph(3), comm, dtype="float32", algorithm=algorithm, wire=wire, error_feedback=True)
    late, delay = graph.forward_arcs.delayed, graph.algorithm.delay or 0
    rows, targets = inputs(graph)
    total, count = [0.0, 0.0], 60 * max(delay, 1)
    for epoch in range(count + 3 * max(delay, 1)):
        found = both_legs(late.at(0, epoch, 1), rows, targets)
        if epoch >= 3 * max(delay, 1):
            total = [one + other.astype(np.float64) for one, other in zip(total, found, strict=True)]
    graph.drain()
    exact = both_legs(graph.exchange, rows, targets)
    repeats = count / max(delay, 1)  # distinct messages of a row
    step = {"bfloat16": 2**-8, "int8": 1 / 127, "int4": 1 / 7}[wire] * 4 * 3  # of |x| < 4, at most 2 copies added
    for one, other in zip(total, exact, strict=True):
        assert np.abs(one / count - other).max() < 2 * step / repeats


@pytest.mark.mpi(2, 3)
def test_smoothing_is_a_moving_average_of_what_arrives(comm):
    graph = dist_graph(random_graph(3), comm, algorithm="cd-1", smooth=0.75)
    late = graph.forward_arcs.delayed
    expected = 0.0
    for epoch in range(6):
        rows = np.full((graph.num_owned, 2), float(epoch + 1))
        sources, _ = both_legs(late.at(0, epoch), rows, np.zeros((graph.local.num_target_halos, 2)))
        if epoch == 0:
            expected = 1.0  # the warm-up epoch
        elif epoch > 1:  # what was sent in the last epoch arrives
            expected = 0.75 * expected + 0.25 * epoch
        np.testing.assert_allclose(sources, expected, rtol=1e-14)
    late.drain()


@pytest.mark.mpi(2, 3)
@pytest.mark.parametrize("wire", ["float32", "int8"])
@pytest.mark.parametrize("algorithm", ["cd-0", "cd-1", "cd-3"])
def test_adaptive_sends_only_rows_that_moved_and_one_bit_for_the_others(comm, algorithm, wire):
    graph = dist_graph(random_graph(3), comm, dtype="float32", algorithm=algorithm, wire=wire, adaptive=0.1)
    late, delay = graph.forward_arcs.delayed, graph.algorithm.delay or 0
    rows, targets = inputs(graph)
    for epoch in range(2 * delay + 2):
        both_legs(late.at(0, epoch), rows, targets)  # by now every row was sent, and arrived
    moving = graph.owned_ids % 3 == 0
    later = rows.copy()
    later[moving] *= 1.2
    later[~moving] *= 1.05
    sent_rows = 0
    for epoch in range(2 * delay + 2, 4 * delay + 4):
        before = graph.transport.counters.sent_bytes
        sources, _ = both_legs(late.at(0, epoch), later, targets)
        leg = late._legs["broadcast", 0]
        flags = sum(p.flag_bytes for p in leg.parcels(late.bin.sources_owner))
        flags += sum(p.flag_bytes for p in late._legs["reduce", 0].parcels(late.bin.targets_halo))
        sent_rows += (graph.transport.counters.sent_bytes - before - flags) // leg.wire.row_bytes(leg.held)
    late.drain()
    assert sent_rows == np.count_nonzero(moving[graph.local.plan.broadcast_rows])  # once each
    everyone = np.concatenate(comm.allgather(graph.owned_ids))
    before, after = (np.concatenate(comm.allgather(one)) for one in (rows, later))
    place = np.argsort(everyone)[graph.local.global_ids[graph.local.source_halo_rows]]
    halo_moves = graph.local.global_ids[graph.local.source_halo_rows] % 3 == 0
    expected = np.where(halo_moves[:, None], after[place], before[place])
    tolerance = 0 if wire == "float32" else 5 / 127 * 1.2
    np.testing.assert_allclose(sources, expected, atol=tolerance)


@pytest.mark.mpi(2)
def test_a_small_bound_sends_what_moves_at_all(comm):
    """With rows that all change in every epoch, adaptive sending is the plain schedule to the bit."""
    plain = dist_graph(random_graph(3), comm, dtype="float32", algorithm="cd-2", wire="int8")
    careful = dist_graph(random_graph(3), comm, dtype="float32", algorithm="cd-2", wire="int8", adaptive=1e-6)
    for epoch in range(7):
        each = [both_legs(g.forward_arcs.delayed.at(0, epoch), *inputs(g, epoch)) for g in (plain, careful)]
        for one, other in zip(*each, strict=True):
            np.testing.assert_array_equal(one, other)
    plain.drain()
    careful.drain()


def _ends(plan):
    """Ends of the rows sent, and of the rows received, by broadcast and by reduce."""
    return (plan.broadcast_indptr, plan.target_indptr), (plan.source_indptr, plan.reduce_indptr)


@pytest.mark.mpi(2)
def test_memory_of_the_options(comm):
    """Error feedback and adaptive sending each keep one row per row sent."""
    sizes = {}
    for name, options in {"": {}, "feedback": {"error_feedback": True}, "adaptive": {"adaptive": 0.1}}.items():
        graph = dist_graph(random_graph(3), comm, dtype="float32", algorithm="cd-2", wire="int8", **options)
        late = graph.forward_arcs.delayed
        for epoch in range(5):
            both_legs(late.at(0, epoch), *inputs(graph))
        sizes[name] = late.buffer_bytes()
        late.drain()
    plan = graph.local.plan
    sent, received = (int(a[-1] + b[-1]) for a, b in _ends(plan))
    assert sizes[""] == 4 * WIDTH * received + (WIDTH + 4) * (sent + received)  # held, and one int8 row each way
    kept = 4 * WIDTH * int(plan.broadcast_indptr[-1] + plan.target_indptr[-1])
    assert sizes["feedback"] == sizes[""] + kept
    flags = 2 * 2 * 2 * 2 * 64 * comm.size  # legs, ends, bins; at most two lines of 64 bytes a message
    assert sizes[""] + kept <= sizes["adaptive"] <= sizes[""] + kept + flags
