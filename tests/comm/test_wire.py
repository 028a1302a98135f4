"""Narrow wires: bytes as promised, errors within a step of the scale, unbiased, repeatable."""

import numpy as np
import pytest
from cut_graphs import DIRECTED, broadcast_and_reduce, dist_graph, random_graph

from distgnn.errors import InputError

WIDTH = 24
STEP = {"bfloat16": 2**-8, "int8": 1 / 127, "int4": 1 / 7}  # of the largest value in a row
BYTES = {"bfloat16": 2 * WIDTH, "int8": WIDTH + 4, "int4": WIDTH // 2 + 4}


def broadcast(graph, rows, epoch: int = 0, seed: int = 0) -> np.ndarray:
    exchange = graph.forward_arcs.delayed.at(0, epoch, seed)
    exchange.start_broadcast(rows)
    return exchange.finish_broadcast().copy()


def inputs(comm, wire: str):
    graph = dist_graph(random_graph(3), comm, dtype="float32", wire=wire)
    rows = np.random.default_rng(0).standard_normal((graph.num_global_nodes, WIDTH)).astype(np.float32)
    return graph, rows[graph.owned_ids], rows[graph.local.global_ids[graph.local.source_halo_rows]]


@pytest.mark.mpi(3)
@pytest.mark.parametrize("wire", ["bfloat16", "int8", "int4"])
def test_broadcast(comm, wire):
    graph, rows, expected = inputs(comm, wire)
    before = graph.transport.counters.sent_bytes
    found = broadcast(graph, rows)
    sent = graph.transport.counters.sent_bytes - before
    assert sent == BYTES[wire] * graph.local.plan.broadcast_indptr[-1]
    largest = np.abs(expected).max(axis=1, keepdims=True)
    assert (np.abs(found - expected) <= STEP[wire] * largest * 1.001).all()
    np.testing.assert_array_equal(broadcast(graph, rows), found)


@pytest.mark.mpi(2)
@pytest.mark.parametrize("wire", ["int8", "int4"])
def test_rounding_is_unbiased_and_drawn_anew_in_each_epoch_and_for_each_seed(comm, wire):
    graph, rows, expected = inputs(comm, wire)
    found = np.array([broadcast(graph, rows, epoch) for epoch in range(200)])
    assert not np.array_equal(found[0], found[1])
    assert not np.array_equal(found[0], broadcast(graph, rows, 0, seed=1))
    largest = np.abs(expected).max(axis=1, keepdims=True)
    error = (found.mean(axis=0) - expected) / (STEP[wire] * largest)
    assert np.abs(error).max() < 5 * 0.5 / np.sqrt(200)  # 5 standard deviations of a mean of 200 roundings


@pytest.mark.mpi(3)
@pytest.mark.parametrize("wire", ["bfloat16", "int8", "int4"])
def test_reduce_adds_what_arrives(comm, wire):
    graph = dist_graph(random_graph(3), comm, dtype="float32", wire=wire)
    exchange = graph.forward_arcs.delayed.at(0, 0)
    targets = exchange.target_rows(np.empty((0, WIDTH), np.float32))
    targets[:] = np.linspace(-1, 1, WIDTH)
    exchange.start_reduce(targets)
    out = np.zeros((graph.num_owned, WIDTH), np.float32)
    exchange.finish_reduce(out)
    halos = np.concatenate(comm.allgather(graph.local.global_ids[graph.local.target_halo_rows]))
    counts = np.bincount(halos, minlength=graph.num_global_nodes)[graph.owned_ids, None]
    assert (np.abs(out - counts * np.linspace(-1, 1, WIDTH)) <= counts * STEP[wire] * 1.001 + 1e-6).all()


@pytest.mark.mpi(1, 2)
def test_what_no_wire_can_carry_is_refused(comm):
    with pytest.raises(InputError, match="wire int8 is for float32 rows"):
        dist_graph(random_graph(3), comm, dtype="float64", wire="int8")
    with pytest.raises(InputError, match="unknown wire 'int3'"):
        dist_graph(random_graph(3), comm, dtype="float32", wire="int3")


@pytest.mark.mpi(1)
def test_messages_of_one_epoch_share_no_rounding(comm):
    """Forward and backward, broadcast and reduce, and every site round the same row of the same id differently."""
    graph = dist_graph(random_graph(3), comm, dtype="float32", wire="int4")
    rows = np.random.default_rng(0).standard_normal((8, WIDTH)).astype(np.float32)
    numbers, ids = np.arange(8, dtype=np.int32), np.arange(8)
    seen = set()
    for late in graph.exchanges.delayed:
        for verb in ("broadcast", "reduce"):
            for site in (0, 1):
                out = np.zeros((8, BYTES["int4"]), np.uint8)
                late.wire.encode(verb, rows, numbers, ids, out, (0, 0, site))
                seen.add(out.tobytes())
    assert len(seen) == 2 * 2 * 2


@pytest.mark.mpi(3)
def test_partial_sums_of_several_ranks_share_no_rounding(comm):
    """Two ranks that send the same row of one vertex round it differently: errors partly cancel when they are added."""
    graph = dist_graph(random_graph(3), comm, dtype="float32", wire="int4")
    late = graph.exchanges.delayed[0]
    row = np.random.default_rng(0).standard_normal(WIDTH).astype(np.float32)
    exchange = late.at(0, 0)
    targets = exchange.target_rows(np.empty((0, WIDTH), np.float32))
    targets[:] = row
    exchange.start_reduce(targets)
    exchange.finish_reduce(np.zeros((graph.num_owned, WIDTH), np.float32))
    held, owned = late.channel("reduce", 0, targets).held, late.plan.reduce_rows
    partials = held.widen(np.empty((held.num_rows, WIDTH), np.float32))
    pairs = [np.flatnonzero(owned == vertex) for vertex in np.unique(owned)]
    pairs = [pair for pair in pairs if len(pair) == 2]
    assert len(pairs) > 3
    assert not any(np.array_equal(*partials[pair]) for pair in pairs)


@pytest.mark.mpi(3)
@pytest.mark.parametrize("direction", [0, 1])
def test_partial_sums_are_rounded_with_the_ids_of_their_vertices(comm, direction):
    """The ids themselves are reduced: each owner gets its vertex's, once from every rank that rounds with it."""
    graph = dist_graph(random_graph(3, directed=DIRECTED), comm, dtype="float32", wire="int4")
    ids = graph.exchanges.delayed[direction].wire.halo_ids - (comm.rank + 1) * graph.num_global_nodes
    exchange = graph.exchanges.exact[direction]
    _, sums = broadcast_and_reduce(
        exchange, np.zeros((graph.num_owned, 1), np.float32), ids[:, None].astype(np.float32)
    )
    senders = np.bincount(exchange.plan.reduce_rows, minlength=graph.num_owned)
    assert senders.any()
    np.testing.assert_array_equal(sums[:, 0], senders * graph.owned_ids)
