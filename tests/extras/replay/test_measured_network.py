"""What `distgnn prices` measures of messages is a network."""

import pytest

from distgnn.extras.replay import measured_network
from distgnn.extras.replay.network import Network


@pytest.mark.mpi(3)
def test_measured_messages_make_a_network(comm, monkeypatch):
    for name, value in {"ROUNDS": 1, "LARGE": 1 << 16, "LEAST_SECONDS": 0.0, "PIECE_SECONDS": 1e-4}.items():
        monkeypatch.setattr(measured_network, name, value)
    found = measured_network.measure_network(comm)
    network = Network(**found).check()
    assert comm.allgather(found) == [found] * comm.size
    assert 0 < network.rank_bandwidth == network.bandwidth and network.byte_seconds >= 0
