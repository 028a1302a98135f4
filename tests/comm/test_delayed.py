"""The delayed schedule: delay 0 is synchronous, still rows become exact, what counts when is a matter of epochs."""

import numpy as np
import pytest
from cut_graphs import broadcast_and_reduce, dist_graph, random_graph

from distgnn.comm import DelayedExchange, make_bins


def delayed(graph, delay: int, warmup: int = 0) -> DelayedExchange:
    bins = make_bins(graph.local.plan, max(delay, 1), graph.comm)
    return DelayedExchange(graph.exchange, bins, delay, warmup, graph.exchanges.wire_of("float32", 0))


def inputs(graph, epoch: int = 0) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng([graph.rank, epoch])
    return random.random((graph.num_owned, 8)), random.random((graph.local.num_target_halos, 8))


@pytest.mark.mpi(1, 3)
def test_delay_0_is_bit_identical_to_the_synchronous_exchange(comm):
    graph = dist_graph(random_graph(3), comm)
    late = delayed(graph, 0)
    for epoch in range(3):
        exact = broadcast_and_reduce(graph.exchange, *inputs(graph, epoch))
        for one, other in zip(broadcast_and_reduce(late.at(0, epoch), *inputs(graph, epoch)), exact, strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.mpi(3)
@pytest.mark.parametrize("delay", [1, 2, 5])
def test_still_rows_are_exact_within_2r_epochs_from_zero(comm, delay):
    graph = dist_graph(random_graph(3), comm)
    late = delayed(graph, delay)
    exact = broadcast_and_reduce(graph.exchange, *inputs(graph))
    for epoch in range(2 * delay):
        found = broadcast_and_reduce(late.at(0, epoch), *inputs(graph))
        if epoch < delay:
            assert not found[0].any()
    for one, other in zip(found, exact, strict=True):
        np.testing.assert_array_equal(one, other)
    late.drain()


@pytest.mark.mpi(3)
@pytest.mark.parametrize("delay", [1, 3])
def test_a_bin_counts_exactly_r_epochs_after_it_was_sent(comm, delay):
    """Rows of epoch e carry the number e: held rows are then the epoch in which their bin was sent last."""
    graph = dist_graph(random_graph(3), comm)
    late = delayed(graph, delay, warmup=1)
    num_targets = graph.local.num_target_halos
    for epoch in range(4 * delay):
        rows = (np.full((n, 8), float(epoch)) for n in (graph.num_owned, num_targets))
        sources, _ = broadcast_and_reduce(late.at(0, epoch), *rows)
        expected = np.zeros_like(sources)
        for sent in range(1, epoch - delay + 1):
            for piece in [piece for of_rank in late.bins[sent % delay].sources_halo for piece in of_rank]:
                expected[piece] = sent
        np.testing.assert_array_equal(sources, expected)
    late.drain()


@pytest.mark.mpi(3)
def test_warm_up_is_exact_and_fills_the_held_rows(comm):
    graph = dist_graph(random_graph(3), comm)
    late = delayed(graph, 3, warmup=2)
    for epoch in range(2):
        exact = broadcast_and_reduce(graph.exchange, *inputs(graph, epoch))
        for one, other in zip(broadcast_and_reduce(late.at(0, epoch), *inputs(graph, epoch)), exact, strict=True):
            np.testing.assert_array_equal(one, other)
    for one, other in zip(broadcast_and_reduce(late.at(0, 2), *inputs(graph, 5)), exact, strict=True):
        np.testing.assert_array_equal(one, other)
    late.drain()


@pytest.mark.mpi(2)
def test_late_rows_give_back_the_messages_of_an_evaluation(comm):
    graph = dist_graph(random_graph(3), comm)
    late, (rows, targets) = delayed(graph, 2, warmup=1), inputs(graph)
    broadcast_and_reduce(late.at(0, 0), rows, targets)
    exact = broadcast_and_reduce(graph.exchange, rows, targets)
    for epoch in range(1, 4):
        broadcast_and_reduce(late.at(0, epoch), rows, targets)
        assert graph.transport.messages.num_bytes == targets.nbytes  # partial sums are late rows' too
    for one, other in zip(broadcast_and_reduce(graph.exchange, rows, targets), exact, strict=True):
        np.testing.assert_array_equal(one, other)
    late.drain()


@pytest.mark.mpi(2)
def test_sites_do_not_mix(comm):
    graph = dist_graph(random_graph(3), comm)
    late = delayed(graph, 1, warmup=1)
    shape = (graph.num_owned, 8), (graph.local.num_target_halos, 8)
    for site in (0, 1):
        broadcast_and_reduce(late.at(site, 0), *(np.full(one, 10.0 + site) for one in shape))
    for site in (0, 1):
        sources, _ = broadcast_and_reduce(late.at(site, 1), *(np.zeros(one) for one in shape))
        assert (sources == 10 + site).all()
    late.drain()


@pytest.mark.mpi(3)
@pytest.mark.parametrize("delay", [1, 5])
def test_bytes_and_memory(comm, delay):
    """A channel sends each row once in r epochs; it holds rows, one set of those to come, and the largest message."""
    graph = dist_graph(random_graph(3), comm)
    late = delayed(graph, delay)
    rows, targets = inputs(graph)
    before = graph.transport.counters.sent_bytes
    for epoch in range(2 * delay):
        broadcast_and_reduce(late.at(0, epoch), rows, targets)
    plan = graph.local.plan
    row_bytes = rows.itemsize * rows.shape[1]
    sent = int(plan.broadcast_indptr[-1] + plan.target_indptr[-1])
    received = int(plan.source_indptr[-1] + plan.reduce_indptr[-1])
    assert graph.transport.counters.sent_bytes - before == 2 * sent * row_bytes
    leaving = sum(
        max(sum(piece.stop - piece.start for of_rank in bin_of(one) for piece in of_rank) for one in late.bins)
        for bin_of in (lambda one: one.sources_owner, lambda one: one.targets_halo)
    )
    assert leaving < sent or delay == 1
    assert late.buffer_bytes() == (received + leaving + received) * row_bytes
    late.drain()
