"""Exchanges bring the owner's rows, add partial sums at the owner, and are transposes of each other."""

import gc
import time

import numpy as np
import pytest
from cut_graphs import dist_graph, random_cut, random_graph

from distgnn.comm import exchange
from distgnn.errors import RunError


@pytest.fixture(params=["vertex cut", "split arcs"])
def graph(request, comm):
    data = random_graph(3)
    edges = data.edge_list()
    return dist_graph(data, comm, random_cut(edges, comm.size, split_arcs=request.param == "split arcs"))


def owned_rows(graph, width: int) -> np.ndarray:
    return graph.owned_ids[:, None] * 10.0 + np.arange(width)


@pytest.mark.mpi(1, 3)
@pytest.mark.parametrize("width", [1, 5, 32])
def test_broadcast_brings_the_owners_rows(graph, width):
    graph.exchange.start_broadcast(owned_rows(graph, width))
    sources = graph.exchange.finish_broadcast()
    ids = graph.local.global_ids[graph.local.source_halo_rows]
    np.testing.assert_array_equal(sources, ids[:, None] * 10.0 + np.arange(width))


@pytest.mark.mpi(3)
def test_reduce_adds_each_target_halo_once(graph, comm):
    targets = graph.exchange.target_rows(np.empty((0, 8)))
    targets[:] = 1
    graph.exchange.start_reduce(targets)
    out = np.zeros((graph.num_owned, 8))
    graph.exchange.finish_reduce(out)
    halos = np.concatenate(comm.allgather(graph.local.global_ids[graph.local.target_halo_rows]))
    counts = np.bincount(halos, minlength=graph.num_global_nodes)
    np.testing.assert_array_equal(out, np.repeat(counts[graph.owned_ids, None], 8, axis=1))


@pytest.mark.mpi(3)
def test_partial_sums_made_in_pieces_have_the_same_bits_and_take_the_room_of_one(graph, comm, monkeypatch):
    monkeypatch.setattr(exchange, "PIECE_BYTES", 128)  # two rows
    given = np.random.default_rng(comm.rank).standard_normal((int(graph.exchange.plan.target_indptr[-1]), 8))
    targets = graph.exchange.target_rows(given)
    targets[:] = given
    graph.exchange.start_reduce(targets)
    whole, found = np.zeros((2, graph.num_owned, 8))
    graph.exchange.finish_reduce(whole)
    graph.exchange.drain()
    graph.exchange.release("partials", "targets", "sources", "packed")
    graph.exchange.reduce_made(lambda piece, into: np.copyto(into, given[piece]), found)
    assert len(graph.exchange.plan.reduce_rows) > 4
    assert [block.nbytes for _, block in graph.transport.messages.blocks()] == [128, 128]
    np.testing.assert_array_equal(whole, found)


@pytest.mark.mpi(3)
@pytest.mark.parametrize("exchange", ["exchange", "transposed_exchange"])
def test_reduce_is_the_transpose_of_broadcast_on_the_transposed_plan(graph, comm, exchange):
    """<broadcast(x), y> = <x, reduce(y)>, with y on source halos: they are the targets of the transposed plan."""
    there, back = graph.exchange, graph.transposed_exchange
    if exchange == "transposed_exchange":
        there, back = back, there
    random = np.random.default_rng(comm.rank)
    x = random.standard_normal((graph.num_owned, 8))
    there.start_broadcast(x)
    sources = there.finish_broadcast().copy()
    y = random.standard_normal(sources.shape)
    back.target_rows(y)[:] = y
    back.start_reduce(back.target_rows(y))
    out = np.zeros_like(x)
    back.finish_reduce(out)
    left, right = comm.allreduce((sources * y).sum()), comm.allreduce((x * out).sum())
    assert left == pytest.approx(right, rel=1e-12, abs=1e-12)  # float64 sums in another order


@pytest.mark.mpi(3)
def test_repeated_calls_reuse_buffers_and_count_bytes(graph, comm):
    rows = owned_rows(graph, 8)
    graph.exchange.start_broadcast(rows)
    first = graph.exchange.finish_broadcast()
    bytes_once, held = graph.transport.counters.sent_bytes, graph.transport.messages.num_bytes
    graph.exchange.start_broadcast(rows + 1)
    second = graph.exchange.finish_broadcast()
    assert np.shares_memory(second, first)
    assert graph.transport.messages.num_bytes == held
    assert graph.transport.counters.sent_bytes == 2 * bytes_once
    assert bytes_once == 8 * 8 * graph.local.plan.broadcast_indptr[-1]
    assert comm.allreduce(bytes_once) == 8 * 8 * comm.allreduce(graph.local.num_source_halos)


@pytest.mark.mpi(3)
def test_debug_names_the_ranks_that_differ(comm):
    graph = dist_graph(random_graph(3), comm, debug=True)
    width = 4 if comm.rank == 0 else 5
    with pytest.raises(RunError, match=r"ranks differ in their exchanges.*rank 1: \(0, 'broadcast', 5\)"):
        graph.exchange.start_broadcast(owned_rows(graph, width))


@pytest.mark.mpi(2)
def test_rows_in_flight_outlive_their_sender(comm):
    """A rank that is done drops its graph while the other, still busy, has not read the message."""
    data = random_graph(3)
    graph = dist_graph(data, comm, random_cut(data.edge_list(), comm.size))
    ids, width = graph.local.global_ids[graph.local.source_halo_rows], 4000  # wide: not sent along with the envelope
    graph.exchange.start_broadcast(owned_rows(graph, width))
    if comm.rank == 1:
        time.sleep(0.3)
    sources = graph.exchange.finish_broadcast()
    if comm.rank == 0:
        del graph
        gc.collect()  # a graph is in a circle
        _ = [np.full((len(ids), width), -1.0) for _ in range(8)]
    np.testing.assert_array_equal(sources, ids[:, None] * 10.0 + np.arange(width))
