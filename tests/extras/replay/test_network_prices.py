"""What `distgnn prices` measures of messages is a network."""

import pytest

from distgnn.extras.replay import network_prices
from distgnn.extras.replay.network import Network


@pytest.mark.mpi(3)
def test_measured_messages_make_a_network(comm, monkeypatch):
    for name, value in {"ROUNDS": 1, "LARGE": 1 << 16, "LEAST_SECONDS": 0.0, "PIECE_SECONDS": 1e-4}.items():
        monkeypatch.setattr(network_prices, name, value)
    found = network_prices.measure_network(comm)
    network = Network(**found).check()
    assert comm.allgather(found) == [found] * comm.size
    assert 0 < network.overlap_bandwidth <= network.rank_bandwidth == network.bandwidth
