"""The network model beside closed forms, and the texts that it is made from."""

import json
import math

import numpy as np
import pytest

from distgnn.errors import InputError
from distgnn.extras.replay.flows import Flows, Links, fair_rates
from distgnn.extras.replay.network import Network, parse_network, sum_steps

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


@pytest.mark.parametrize(
    "ranks, num_bytes, expected",
    [
        (8, 1000, [(1, 1000.0), (2, 1000.0), (4, 1000.0)]),
        (4, 8000, [(1, 4000.0), (2, 2000.0), (2, 2000.0), (1, 4000.0)]),
        (3, 8000, [(1, 8000.0), (1, 8000.0), (1, 4000.0), (1, 4000.0)]),
        (1, 1000, []),
    ],
)
def test_sums_over_ranks(ranks, num_bytes, expected):
    assert sum_steps(ranks, num_bytes) == expected


def test_texts(tmp_path):
    found = parse_network("bandwidth=100gbit, latency=1.5us,ranks_per_node=2,buffer_bytes=2MB")
    assert (found.bandwidth, found.latency, found.ranks_per_node) == (12.5e9, 1.5e-6, 2)
    assert (found.buffer_bytes, found.memory_bandwidth) == (2e6, 10e9)
    (tmp_path / "prices.json").write_text(json.dumps({"network": {"bandwidth": 1e9, "latency": 2e-5}}))
    found = parse_network(f"{tmp_path}/prices.json,latency=3us")
    assert (found.bandwidth, found.latency) == (1e9, 3e-6)


@pytest.mark.parametrize(
    "text, says",
    [
        ("fast", "network 'fast': expected a rate"),
        ("latncy=2us", "latncy"),
        ("latency=soon", "latency=soon"),
        ("ranks_per_node=1.5", "whole number"),
        ("bandwidth=0gbit", "more than 0"),
        ("nowhere.json", "nowhere.json"),
    ],
)
def test_an_unknown_text_is_one_line(text, says):
    with pytest.raises(InputError) as caught:
        parse_network(text)
    assert says in str(caught.value) and "\n" not in str(caught.value)
