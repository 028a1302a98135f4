"""Messages on their way, beside closed forms: what links they share, and what each then gets."""

import math

import numpy as np
import pytest

from distgnn.extras.replay.flows import Flows, Links, fair_rates
from distgnn.extras.replay.network import Network

SECOND = Network(bandwidth=100.0, latency=0.0, overhead=0.0, memory_bandwidth=500.0)


def arrivals(network: Network, num_ranks: int, messages: list[tuple[int, int, float]]) -> list[float]:
    """When messages that start at 0 have arrived."""
    flows = Flows(network, num_ranks)
    for name, message in enumerate(messages):
        flows.start(name, *message)
    found = [math.nan] * len(messages)
    while (arrival := flows.next_arrival()) < math.inf:
        flows.advance(arrival)
        for name in flows.take_arrived():
            found[name] = flows.now
    return found


@pytest.mark.parametrize(
    "messages, expected",
    [
        ([(0, 1, 100.0)], [1.0]),
        ([(0, 1, 100.0), (1, 0, 100.0)], [1.0, 1.0]),  # a link is full duplex
        ([(0, 1, 100.0), (0, 2, 100.0)], [2.0, 2.0]),  # two messages leave by one link
        ([(0, 2, 100.0), (1, 2, 50.0)], [1.5, 1.0]),  # 50 and 50, then 50 at full rate
        ([(0, 1, 100.0), (0, 2, 100.0), (3, 2, 300.0)], [2.0, 2.0, 4.0]),  # both links of rank 2 and 0 are shared
    ],
)
def test_messages_share_links_equally(messages, expected):
    np.testing.assert_allclose(arrivals(SECOND, 4, messages), expected, rtol=1e-6)


def test_what_one_message_cannot_use_others_get():
    """Three from rank 0, one of them to a rank that three others send to: it gets 25, its fellows 37.5 each."""
    links = Links(SECOND, 6)
    pairs = [(0, 1), (0, 2), (0, 3), (4, 3), (5, 3), (2, 3)]
    rates = fair_rates(np.array([links.between(*pair) for pair in pairs]), links.bandwidth)
    np.testing.assert_allclose(rates, [37.5, 37.5, 25, 25, 25, 25])


def test_ranks_of_a_node_share_its_link_and_pass_it_by():
    network = Network(**{**SECOND.as_dict(), "ranks_per_node": 2})
    assert arrivals(network, 4, [(0, 2, 100.0), (1, 3, 100.0)]) == pytest.approx([2.0, 2.0])
    assert arrivals(network, 4, [(0, 1, 100.0)]) == pytest.approx([0.2])


def test_bytes_are_kept_with_a_coarse_resolution():
    """Many random messages: whatever the rounds of fair shares leave out, no link carries more than it can."""
    random = np.random.default_rng(0)
    messages = [(int(a), int(b), float(n)) for a, b, n in random.integers(0, [16, 16, 1000], (200, 3)) if a != b]
    last = max(arrivals(SECOND, 16, messages))
    out, into = np.zeros(16), np.zeros(16)
    for source, target, count in messages:
        out[source] += count
        into[target] += count
    least = max(out.max(), into.max()) / SECOND.bandwidth
    assert least * (1 - 1e-6) <= last <= 1.3 * least
