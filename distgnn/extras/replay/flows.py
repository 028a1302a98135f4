"""Messages on their way: each moves at the rate that its links leave it. A fluid model, advanced from event to event.

Legend: F messages on their way, R links, P ranks.

Rates are max-min fair: the link with the least bandwidth per message gives each of its messages that much; these are
taken out, with their share of every other link, and so on. With many messages the last rounds are left out: a message
then gets the least equal share of its links, which no link exceeds.

Messages from one rank to another are one flow: the first moves, the others stand in line behind it. Where buffers are
limited, a flow stops when that number of bytes has moved since the sender, or the receiver, last called the library.
"""

import math
from collections import deque

import numpy as np

from distgnn.extras.replay.network import Network

MOST_ROUNDS, FEW = 4, 64  # of fair shares, where there are more than FEW messages
DONE, INSTANT = 1e-9, 1e-11  # share of a message, and seconds, that may be left when it counts as arrived
SLOWEST, FASTEST = 1e-300, 1e300  # bytes a second
STOPPED = 1.0  # bytes of room at which a message stands still
NEVER = math.inf


class Links:
    """The links of all nodes, both ways, and their memories. Link 0 is unlimited."""

    def __init__(self, network: Network, num_ranks: int):
        self._network, self._num_nodes = network, network.node_of(num_ranks - 1) + 1
        counts = [1, 2 * self._num_nodes, self._num_nodes]
        rates = np.repeat([FASTEST, network.bandwidth, network.memory_bandwidth], counts)
        self.bandwidth: np.ndarray = np.minimum(rates, FASTEST)

    def between(self, source: int, target: int) -> tuple[int, int]:
        """Numbers of the links that a message takes."""
        one, other, nodes = self._network.node_of(source), self._network.node_of(target), self._num_nodes
        return (1 + 2 * nodes + one, 0) if one == other else (1 + one, 1 + nodes + other)


def fair_rates(links: np.ndarray, bandwidth: np.ndarray) -> np.ndarray:
    """Max-min fair rates of messages, [F]; `links` [F, 2] into `bandwidth` [R]."""
    rates, left, waiting = np.zeros(len(links)), bandwidth.copy(), np.arange(len(links))
    few, rounds = len(links) <= FEW, 0
    while len(waiting):
        taken, rounds = links[waiting], rounds + 1
        counts = np.bincount(taken.ravel(), minlength=len(left))
        counts[0] = 1
        each = (left / np.maximum(counts, 1))[taken].min(axis=1)
        last = not few and rounds == MOST_ROUNDS
        fixed = each <= each.min() * (NEVER if last else 1 + 1e-9 if few else 1.02)
        rates[waiting[fixed]] = each[fixed]
        used = np.bincount(taken[fixed].ravel(), np.repeat(each[fixed], taken.shape[1]), len(left))
        used[0] = 0
        left, waiting = np.maximum(left - used, 0.0), waiting[~fixed]
    return np.maximum(rates, SLOWEST)


class Flows:
    """The messages that are on their way.

    Args: resolution: seconds within which events count as one, 0 is exact.

    Attributes: moved: float64 [P], bytes that each rank has sent and received.
    """

    def __init__(self, network: Network, num_ranks: int, resolution: float = 0.0):
        self._links, self._resolution, self._buffer = Links(network, num_ranks), resolution, network.buffer_bytes
        self.now: float = 0.0
        self.moved: np.ndarray = np.zeros(num_ranks)
        self._taken, self._ends = np.empty((0, 2), np.int64), np.empty((0, 2), np.int64)
        self._left, self._rates, self._sizes = np.empty(0), np.empty(0), np.empty(0)
        self._names = np.empty(0, np.int64)
        self._new: list[tuple[int, int, int, float]] = []
        self._lines: dict[tuple[int, int], deque] = {}  # by ends of a message that moves: those behind it
        self._stale = False
        # [sender or receiver called, sender, receiver]: what may move before its next call
        self._room = np.full((2, num_ranks, num_ranks), NEVER) if self._buffer < NEVER else None

    def start(self, name: int, source: int, target: int, num_bytes: float) -> None:
        """A message begins to move now, or stands in line behind the same ranks' messages."""
        if (source, target) in self._lines:
            self._lines[source, target].append((name, source, target, num_bytes))
        else:
            self._lines[source, target] = deque()
            self._new.append((name, source, target, num_bytes))

    def calls(self, rank: int, stays: bool) -> None:
        """A rank called the library, and computes on or, where it `stays`, waits there."""
        if self._room is not None:
            self._room[0, rank] = self._room[1, :, rank] = NEVER if stays else self._buffer
            self._stale = True

    def next_arrival(self) -> float:
        """When the next message has arrived, or stands still, if nothing else happens."""
        self._refresh()
        if not len(self._names):
            return NEVER
        room = self._room_left()
        return self.now + float((np.where(room > STOPPED, np.minimum(self._left, room), NEVER) / self._rates).min())

    def _room_left(self) -> np.ndarray:
        """Bytes that each message may move before one of its ranks calls the library."""
        if self._room is None:
            return np.full(len(self._names), NEVER)
        return self._room[:, self._ends[:, 0], self._ends[:, 1]].min(axis=0)

    def advance(self, time: float) -> None:
        """Let everything move until `time`."""
        seconds = time - self.now
        if seconds <= 0:
            return
        self._refresh()
        if len(self._names):
            moved = np.minimum(self._rates * seconds, self._left)
            self._left -= moved
            np.add.at(self.moved, self._ends.ravel(), np.repeat(moved, 2))
            if self._room is not None:
                self._room[:, self._ends[:, 0], self._ends[:, 1]] -= moved  # one message a pair: no entry comes twice
                self._stale |= bool(((self._room_left() <= STOPPED) & (self._rates > SLOWEST)).any())
        self.now = time

    def take_arrived(self) -> list[int]:
        """Names of the messages that have arrived; they are on their way no more."""
        self._refresh()
        done = self._left <= np.maximum(self._sizes * DONE, self._rates * max(self._resolution, INSTANT))
        if not done.any():
            return []
        found, keep = self._names[done].tolist(), ~done
        for source, target in self._ends[done].tolist():
            line = self._lines[source, target]
            if line:
                self._new.append(line.popleft())
            else:
                del self._lines[source, target]
        self._taken, self._left, self._sizes = self._taken[keep], self._left[keep], self._sizes[keep]
        self._ends, self._names, self._stale = self._ends[keep], self._names[keep], True
        return found

    def _refresh(self) -> None:
        if self._new:
            ends = [new[1:3] for new in self._new]
            sizes = [max(new[3], 1e-9) for new in self._new]
            self._taken = np.concatenate([self._taken, np.array([self._links.between(*pair) for pair in ends])])
            self._ends = np.concatenate([self._ends, np.array(ends)])
            self._left, self._sizes = np.concatenate([self._left, sizes]), np.concatenate([self._sizes, sizes])
            self._names = np.concatenate([self._names, np.array([new[0] for new in self._new])])
            self._new, self._stale = [], True
        if self._stale:
            self._rates = np.full(len(self._names), SLOWEST)
            goes = self._room_left() > STOPPED
            self._rates[goes] = fair_rates(self._taken[goes], self._links.bandwidth)
            self._stale = False
