"""What an epoch's length is made of: the chain of computation and messages that ends with the last rank.

Backwards from the end: a rank computed since it last waited; that wait ended when a message arrived, which was on its
way since the later of its two ranks was ready; so on with that rank, until the epoch's start.
"""

from dataclasses import asdict, dataclass
from typing import Any

from distgnn.replay.player import PlayedEpoch, Span

EPSILON = 1e-9


@dataclass(frozen=True)
class Link:
    """A link of the chain: a rank's computation ("aggregate", …), or "network": what it waits for from rank `cause`."""

    rank: int
    name: str
    start: float
    end: float
    cause: int = -1
    call: int = -1

    @property
    def seconds(self) -> float:
        return self.end - self.start

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self) | {"seconds": self.seconds}


def critical_path(epoch: PlayedEpoch) -> list[Link]:
    """The chain, first link first; its links fill the epoch without a gap."""
    rank = max(range(len(epoch.ends)), key=epoch.ends.__getitem__)
    time = epoch.ends[rank]
    chain: list[Link] = []
    most = 2 * sum(map(len, epoch.spans)) + 2
    while time > epoch.start + EPSILON and len(chain) < most:
        span = _before(epoch.spans[rank], time)
        if span is None:
            chain.append(Link(rank, "network", epoch.start, time))
            break
        if span.end < time - EPSILON:  # between two spans a rank posts its messages
            chain.append(Link(rank, "post", span.end, time))
            time = span.end
        elif span.name != "wait":
            chain.append(Link(rank, span.name, span.start, time))
            time = span.start
        else:
            since = min(max(span.cause_time, epoch.start), time)
            chain.append(Link(rank, "network", since, time, span.cause, span.call))
            rank, time = (span.cause if span.cause >= 0 else rank), since
    return chain[::-1]


def _before(spans: list[Span], time: float) -> Span | None:
    """The last span that began before `time`; it may have ended then."""
    low, high = 0, len(spans)
    while low < high:
        middle = (low + high) // 2
        if spans[middle].start < time - EPSILON:
            low = middle + 1
        else:
            high = middle
    return spans[low - 1] if low else None


def shares(chain: list[Link]) -> dict[str, float]:
    """Seconds of the chain by name."""
    found: dict[str, float] = {}
    for link in chain:
        found[link.name] = found.get(link.name, 0.0) + link.seconds
    return found
