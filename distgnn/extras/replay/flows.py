"""Messages on their way: each moves at the rate that its links leave it. A fluid model, advanced from event to event.

Legend: F messages on their way, L links of a message, R links.

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

MOST_ROUNDS = 4  # of fair shares, where there are more than FEW messages
FEW = 64
DONE, INSTANT = 1e-9, 1e-11  # share of a message, and seconds, that may be left when it counts as arrived
SLOWEST = 1e-300  # bytes a second
STOPPED = 1.0  # bytes of room at which a message stands still
NEVER = math.inf


class Links:
    """The links of all ranks: numbers of those that a message takes, and their bandwidths.

    A link that no message shares with another is there all the same: it limits that one message. Link 0 is unlimited.
    """

    def __init__(self, network: Network, num_ranks: int):
        self.network: Network = network
        self.num_ranks: int = num_ranks
        num_nodes = network.node_of(num_ranks - 1) + 1
        num_switches = network.switch_of(num_ranks - 1) + 1
        self._out, self._in = 1, 1 + num_ranks
        self._node_out = 1 + 2 * num_ranks
        self._node_in, self._memory = self._node_out + num_nodes, self._node_out + 2 * num_nodes
        self._up, self._down = self._node_out + 3 * num_nodes, self._node_out + 3 * num_nodes + num_switches
        self.bandwidth: np.ndarray = np.full(self._down + num_switches, math.inf)
        self.bandwidth[self._out : self._node_out] = network.rank_bandwidth
        self.bandwidth[self._node_out : self._memory] = network.bandwidth
        self.bandwidth[self._memory : self._up] = network.memory_bandwidth
        if network.nodes_per_switch:
            up = network.nodes_per_switch * network.bandwidth / network.oversubscription
            self.bandwidth[self._up :] = up

    def between(self, source: int, target: int) -> tuple[int, ...]:
        network = self.network
        ends = self._out + source, self._in + target
        one, other = network.node_of(source), network.node_of(target)
        if one == other:
            return *ends, self._memory + one, 0, 0, 0
        switches = network.switch_of(source), network.switch_of(target)
        tree = (self._up + switches[0], self._down + switches[1]) if switches[0] != switches[1] else (0, 0)
        return *ends, self._node_out + one, self._node_in + other, *tree

    def limit_rank(self, rank: int, bandwidth: float) -> None:
        """Give a rank's own links another bandwidth, both ways."""
        self.bandwidth[[self._out + rank, self._in + rank]] = bandwidth


def fair_rates(links: np.ndarray, bandwidth: np.ndarray) -> np.ndarray:
    """Max-min fair rates of messages, [F]; `links` [F, L] into `bandwidth` [R]. Nothing is faster than 1e300."""
    rates, left = np.zeros(len(links)), np.minimum(bandwidth, 1e300)
    waiting = np.arange(len(links))
    few = len(links) <= FEW
    rounds = 0
    while len(waiting):
        taken = links[waiting]
        counts = np.bincount(taken.ravel(), minlength=len(left))
        shares = np.divide(left, counts, out=np.full(len(left), np.inf), where=counts > 0)
        shares[0] = 1e300
        each = shares[taken].min(axis=1)
        rounds += 1
        if not few and rounds == MOST_ROUNDS:
            rates[waiting] = each
            break
        fixed = each <= each.min() * (1 + 1e-9 if few else 1.02)
        rates[waiting[fixed]] = each[fixed]
        used = np.bincount(taken[fixed].ravel(), np.repeat(each[fixed], taken.shape[1]), len(left))
        left = np.maximum(left - used, 0.0)
        waiting = waiting[~fixed]
    return np.maximum(rates, SLOWEST)


class Flows:
    """The messages that are on their way.

    Args: resolution: seconds within which events count as one, 0 is exact; moved: float64 [ranks], where the bytes
        that each rank sends and receives are added; None: nobody asks.
    """

    def __init__(self, links: Links, resolution: float = 0.0, moved: np.ndarray | None = None):
        self._links, self._resolution, self._moved = links, resolution, moved
        self.now: float = 0.0
        # Which of a message's links may limit it at all, by their place in `Links.between`
        network, tree = links.network, bool(links.network.nodes_per_switch)
        ends = min(network.rank_bandwidth, network.overlap_bandwidth) < math.inf
        self._shared = [place for place, one in enumerate((ends, ends, True, True, tree, tree)) if one]
        self._taken = np.empty((0, len(self._shared)), np.int64)
        self._left, self._rates, self._sizes = np.empty(0), np.empty(0), np.empty(0)
        self._ends = np.empty((0, 2), np.int64)
        self._names = np.empty(0, np.int64)
        self._new: list[tuple[int, int, int, float]] = []
        self._lines: dict[tuple[int, int], deque] = {}  # by ends of a message that moves: those behind it
        self._stale = False
        self._buffer = network.buffer_bytes
        ranks = links.num_ranks if self._buffer < NEVER else 0
        self._room = np.full((2, ranks, ranks), NEVER)  # [sender, receiver]: what may move before its next call

    def start(self, name: int, source: int, target: int, num_bytes: float) -> None:
        """A message begins to move now, or stands in line behind the same ranks' messages."""
        line = self._lines.get((source, target))
        if line is None:
            self._lines[source, target] = deque()
            self._new.append((name, source, target, num_bytes))
        else:
            line.append((name, source, target, num_bytes))

    def calls(self, rank: int, stays: bool) -> None:
        """A rank called the library, and computes on or, where it `stays`, waits there."""
        if self._buffer < NEVER:
            room = NEVER if stays else self._buffer
            self._room[0, rank], self._room[1, :, rank] = room, room
            self._stale = True

    def set_computing(self, rank: int, computing: bool) -> None:
        """A rank that computes moves less than one that waits."""
        network, self._stale = self._links.network, True
        most = min(network.rank_bandwidth, network.overlap_bandwidth) if computing else network.rank_bandwidth
        self._links.limit_rank(rank, most)

    def next_arrival(self) -> float:
        """When the next message has arrived, if nothing else happens."""
        self._refresh()
        if not len(self._names):
            return NEVER
        left = self._left
        if self._buffer < NEVER:
            room = self._room_left()
            left = np.where(room > STOPPED, np.minimum(left, room), NEVER)
        return self.now + float((left / self._rates).min())

    def _room_left(self) -> np.ndarray:
        """Bytes that each message may move before one of its ranks calls the library."""
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
            if self._moved is not None:
                np.add.at(self._moved, self._ends.ravel(), np.repeat(moved, 2))
            if self._buffer < NEVER:
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
        self._ends, self._names = self._ends[keep], self._names[keep]
        self._rates, self._stale = self._rates[keep], True
        return found

    def _refresh(self) -> None:
        if self._new:
            between = [self._links.between(source, target) for _, source, target, _ in self._new]
            sizes = np.array([max(size, 1e-9) for *_, size in self._new])
            self._taken = np.concatenate([self._taken, np.array(between, np.int64)[:, self._shared]])
            self._ends = np.concatenate([self._ends, np.array([new[1:3] for new in self._new], np.int64)])
            self._left, self._sizes = np.concatenate([self._left, sizes]), np.concatenate([self._sizes, sizes])
            self._names = np.concatenate([self._names, np.array([new[0] for new in self._new], np.int64)])
            self._new, self._stale = [], True
        if self._stale:
            self._rates = np.full(len(self._names), SLOWEST)
            goes = self._room_left() > STOPPED if self._buffer < NEVER else slice(None)
            self._rates[goes] = fair_rates(self._taken[goes], self._links.bandwidth)
            self._stale = False
