"""Sums over ranks as messages, and the texts that a network is made from."""

import json

import pytest

from distgnn.errors import InputError
from distgnn.extras.replay.network import parse_network, sum_steps


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
