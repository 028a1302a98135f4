"""Buffers of messages in flight: not written before the send is complete, not read before the receive is.

MPI mostly copies small messages at once, so that a buffer used too early goes unnoticed. Here sends are watched: their
bytes must stay as they were until their requests are waited for. And receives deliver only then.
"""

import numpy as np
import pytest
from cut_graphs import broadcast_and_reduce, dist_graph, random_graph

from distgnn.comm import Transport


class WatchedSends:
    """`changed`: messages whose bytes were written between the send and the wait for it."""

    def __init__(self, monkeypatch):
        self.changed: list[str] = []
        self._flying: list[tuple[set[int], list, np.ndarray, np.ndarray]] = []
        self._send, self._wait = Transport.send, Transport.wait
        monkeypatch.setattr(Transport, "send", lambda transport, *message: self.send(transport, *message))
        monkeypatch.setattr(Transport, "wait", lambda transport, *waited: self.wait(transport, *waited))

    def send(self, transport, rows, rank, tag):
        requests = self._send(transport, rows, rank, tag)
        self._flying.append(({id(one) for one in requests}, requests, rows, rows.copy()))
        return requests

    def wait(self, transport, requests, tag=None):
        self.check(f"before the wait of tag {tag}")
        done = {id(one) for one in requests}
        self._flying = [one for one in self._flying if not one[0] <= done]
        self._wait(transport, requests, tag)

    def check(self, when: str) -> None:
        for _, _, rows, sent in self._flying:
            if not np.array_equal(rows, sent):
                self.changed.append(when)

    @property
    def num_flying(self) -> int:
        return len(self._flying)


def deliver_at_wait(monkeypatch) -> None:
    """What is received reaches its buffer only when its request is waited for."""
    coming: dict[int, tuple] = {}
    receive, wait = Transport.receive, Transport.wait

    def late_receive(transport, rows, rank, tag):
        arriving = np.empty_like(rows)
        requests = receive(transport, arriving, rank, tag)
        coming[id(requests[-1])] = (requests, arriving, rows)
        return requests

    def late_wait(transport, requests, tag=None):
        wait(transport, requests, tag)
        for one in requests:
            if id(one) in coming:
                _, arriving, rows = coming.pop(id(one))
                rows[...] = arriving

    monkeypatch.setattr(Transport, "receive", late_receive)
    monkeypatch.setattr(Transport, "wait", late_wait)


def run(graph, epochs: range, width: int = 8) -> None:
    """Broadcasts and reduces of new rows in each epoch, at two sites, in training and in evaluation, both ways, of two
    widths."""
    random = np.random.default_rng(graph.rank)
    late = graph.exchanges.delayed[0]
    for epoch in epochs:
        exact = [graph.exchange, graph.transposed_exchange]
        exchanges = exact if late is None else [late.at(0, epoch), late.at(1, epoch), *exact]
        for number, exchange in enumerate(exchanges):
            plan = exchange.plan if exchange in exact else late.plan
            shapes = ((num_rows, width + number % 2) for num_rows in (plan.num_owned, plan.num_target_halos))
            rows, targets = (random.standard_normal(shape).astype(np.float32) for shape in shapes)
            broadcast_and_reduce(exchange, rows, targets)


@pytest.mark.mpi(3)
@pytest.mark.parametrize(
    "options", [{}, {"wire": "int8"}, {"algorithm": "cd-1"}, {"algorithm": "cd-3", "wire": "int4"}]
)
def test_what_is_being_sent_is_not_written(comm, monkeypatch, options):
    watched = WatchedSends(monkeypatch)
    graph = dist_graph(random_graph(3), comm, dtype="float32", **options)
    run(graph, range(8))
    assert watched.num_flying > 0
    watched.check("at the end")
    assert watched.changed == []
    graph.drain()


@pytest.mark.mpi(2)
@pytest.mark.parametrize("algorithm", ["cd-1", "cd-3"])
def test_the_state_of_a_schedule_has_what_was_in_flight(comm, monkeypatch, algorithm):
    deliver_at_wait(monkeypatch)
    graph = dist_graph(random_graph(3), comm, dtype="float32", algorithm=algorithm)
    run(graph, range(6))
    state = graph.exchanges.state_dict()
    graph.drain()
    for number, channel in graph.exchanges.delayed[0]._channels.items():
        for bin_number, received in channel.received.items():
            pending = state["forward.{}.{}".format(*number) + f".pending.{bin_number}"]
            np.testing.assert_array_equal(pending, received)
