"""The network of a cluster as numbers: what a message costs, and what messages share. Pure: nothing is measured here.

    rank ── memory of its node ── rank                   ranks of one node
    rank ── node's link ── switch ── node's link ── rank

A message of n bytes costs `overhead` seconds of the processor at each end, arrives no sooner than `latency` after it
was sent, and moves at the rate that its links give it: each link's bandwidth is shared equally by the messages on it.
Messages from one rank to another move one behind the other, in the order in which they were sent.
"""

import json
import math
import re
from dataclasses import dataclass, fields, replace
from typing import Any

from distgnn.config import did_you_mean
from distgnn.errors import InputError
from distgnn.system.atomic import read_text

SMALL_SUM = 2048  # bytes; up to here MPICH and Open MPI sum by recursive doubling, beyond it by halves
SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "": 1.0}
BITS: dict[str, float] = {"": 1, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12}
NUMBER = r"\d+(?:\.\d*)?(?:e[+-]?\d+)?|inf"


@dataclass(frozen=True)
class Network:
    """See above; bandwidths are bytes per second in each direction.

    Args:
        bandwidth: of a node's link.
        latency: seconds from node to node.
        ranks_per_node: ranks that share a node's link; rank r is on node r // ranks_per_node.
        buffer_bytes: at most these move between two ranks, in each direction, between two calls of the library at
            either end while that computes: what its buffers hold.
        overhead: seconds of a rank's processor for each message that it sends or receives.
        byte_seconds: seconds of its processor for each byte that moves while it computes.
        eager_bytes: larger messages move only once their receiver has asked for them.
        memory_bandwidth, memory_latency: between ranks of one node.
    """

    bandwidth: float = 25e9 / 8
    latency: float = 2e-6
    ranks_per_node: int = 1
    buffer_bytes: float = math.inf
    overhead: float = 1e-6
    byte_seconds: float = 0.0
    eager_bytes: int = 16384
    memory_bandwidth: float = 10e9
    memory_latency: float = 1e-6

    def check(self) -> "Network":
        """Return self; raise InputError for numbers that no network has."""
        for name in ("bandwidth", "memory_bandwidth", "buffer_bytes"):
            if not getattr(self, name) > 0:
                raise InputError(f"network: {name} is {getattr(self, name)}: expected more than 0")
        for name in ("latency", "overhead", "byte_seconds", "memory_latency"):
            if not 0 <= getattr(self, name) <= 10:
                raise InputError(f"network: {name} is {getattr(self, name)}: expected seconds, from 0 to 10")
        if self.ranks_per_node < 1 or self.eager_bytes < 0:
            raise InputError("network: expected ranks_per_node of 1 or more, and no negative counts")
        return self

    def node_of(self, rank: int) -> int:
        return rank // self.ranks_per_node

    def latency_between(self, one: int, other: int) -> float:
        """Seconds before a message between two ranks begins to arrive."""
        return self.memory_latency if self.node_of(one) == self.node_of(other) else self.latency

    def as_dict(self) -> dict[str, Any]:
        """For JSON: what is unlimited is left out."""
        found = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in found.items() if value != math.inf}


def sum_steps(num_ranks: int, num_bytes: int) -> list[tuple[int, float]]:
    """How a sum over ranks travels: (distance, bytes) of each message that a rank sends, one after the other.

    Source: Thakur, Rabenseifner and Gropp, Optimization of collective communication operations in MPICH, 2005.
    """
    if num_ranks < 2:
        return []
    if num_bytes <= SMALL_SUM:
        return [(2**step, float(num_bytes)) for step in range(math.ceil(math.log2(num_ranks)))]
    # Reduce-scatter by halves, then all-gather: 2 (P - 1) / P of the bytes; ranks beyond a power of two give theirs.
    whole = int(math.log2(num_ranks))
    halves = [(2**step, num_bytes / 2 ** (step + 1)) for step in range(whole)]
    extra = [(1, float(num_bytes))] * 2 if 2**whole != num_ranks else []
    return [*extra, *halves, *halves[::-1]]


def parse_network(text: str) -> Network:
    """A network from "25gbit", "bandwidth=100gbit,latency=1.5us,ranks_per_node=2", or a file of `distgnn prices`;
    words behind a file change what stands in it. Raises: InputError."""
    network = Network()
    for word in filter(None, (word.strip() for word in text.split(","))):
        name, equals, value = word.partition("=")
        if equals:
            network = replace(network, **{_known(name.strip()): _value(name.strip(), value.strip())})
        elif word.endswith(".json"):
            network = replace(network, **_read_network(word))
        else:
            network = replace(network, bandwidth=_rate(word))
    return network.check()


def _read_network(path: str) -> dict[str, Any]:
    """The section "network" of a file of prices. Raises: InputError that names the file."""
    try:
        found = json.loads(read_text(path))
    except OSError as error:
        raise InputError(f"cannot read network {path}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is no JSON ({error})") from None
    section = found.get("network") if isinstance(found, dict) else None
    if not isinstance(section, dict):
        raise InputError(f"{path} has no network: distgnn prices measures one")
    for name, value in section.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not _known(name):
            raise InputError(f"{path}: {name} is {str(value)[:40]}: expected a number")
    return section


def _known(name: str) -> str:
    names = {field.name for field in fields(Network)}
    if name not in names:
        advice = did_you_mean(name, names) or f": expected {', '.join(sorted(names))}"
        raise InputError(f"network has no {name!r}{advice}")
    return name


def _value(name: str, text: str) -> Any:
    if name.endswith(("bandwidth", "buffer_bytes")):
        return _rate(text)
    kind = next(field.type for field in fields(Network) if field.name == name)
    match = re.fullmatch(rf"({NUMBER})\s*(s|ms|us|ns)?", text.lower())
    if match is None or (kind is int and not match[1].isdigit()):
        raise InputError(f"network: {name}={text} is no {'whole number' if kind is int else 'number, as 2us or 1e-6'}")
    return int(match[1]) if kind is int else float(match[1]) * SECONDS[match[2] or ""]


def _rate(text: str) -> float:
    """Bytes per second of "25gbit" (bits), "3GB" (bytes) or a plain number of bytes."""
    match = re.fullmatch(rf"({NUMBER})\s*([kmgt]?)(bit|b)?(?:/s|ps)?", text.lower())
    if match is None:
        raise InputError(f"network {text!r}: expected a rate such as 25gbit, NAME=VALUE, or a file of prices (.json)")
    return float(match[1]) * BITS[match[2]] / (8 if match[3] == "bit" else 1)
