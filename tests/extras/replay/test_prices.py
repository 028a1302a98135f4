"""What `distgnn prices` measures of messages is a network."""

import pytest

from distgnn.extras.replay import prices
from distgnn.extras.replay.network import Network


@pytest.mark.mpi(3)
def test_measured_messages_make_a_network(comm, monkeypatch):
    for name, value in {"ROUNDS": 1, "LARGE": 1 << 16, "LEAST_SECONDS": 0.0}.items():
        monkeypatch.setattr(prices, name, value)
    found = prices.measure_network(comm)
    network = Network(**found).check()
    assert comm.allgather(found) == [found] * comm.size
    assert 0 < network.bandwidth and network.latency < 1
