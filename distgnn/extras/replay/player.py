"""Plays the recorded epochs of all ranks through a network: a simulation from event to event.

    rank       runs its events one after the other; "wait" stops it until what it waits for is complete
    message    posted -> (its receiver asked for it, where it is large) -> latency -> moves at a fair rate -> arrived
    sum        joined -> the messages of the library's algorithm, one step after the other -> complete
    epoch      all ranks start it together (numbers are gathered after each) and it ends with the last of them

A send is complete when its message has arrived, or, where it is small, at once. While a rank computes, `buffer_bytes`
of its messages move between two calls of the library, and each byte that moves takes `byte_seconds` from it.

What a rank does in an epoch is a list of events; of each, what is recorded and played:

    ("compute", name, seconds)        between two calls of the library; name: aggregate, pack or dense
    ("send", call, rank, bytes)       starts: the number of the exchange in the step, the other rank
    ("receive", call, rank, bytes)
    ("sum", channel, bytes)           joins a sum over all ranks; one channel's run in one order on every rank
    ("wait", [(age, number), …])      until started things are complete: `number` counts what was started (sends,
                                      receives, sums) in the epoch `age` epochs ago
    ("progress",)                     calls the library, so that messages move

Legend: P ranks.
"""

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from distgnn.extras.replay.flows import NEVER, Flows
from distgnn.extras.replay.network import Network, sum_steps

Event = tuple[Any, ...]
Happening = Callable[[float], None]  # at a time
GATHER_BYTES, GATHER_CHANNEL = 512, -1  # of a rank's numbers after an epoch
EXACT_RANKS = 8  # with more, arrivals within `RESOLUTION` of an epoch's computation count as one
RESOLUTION = 1 / 2000


@dataclass
class Recording:
    """One rank's epochs, one after the other as they were trained.

    Args: cycle: epochs after which a late schedule sends the same rows again; sent_to: bytes sent to each rank in each
        epoch; peak_rss_bytes: of the process, an evaluation included.
    """

    rank: int
    cycle: int
    epochs: list[list[Event]]
    sent_to: list[list[int]]
    peak_rss_bytes: int = 0

    def compute_seconds(self, epoch: int) -> float:
        return sum(event[2] for event in self.epochs[epoch] if event[0] == "compute")


@dataclass
class PlayedEpoch:
    """One epoch: its seconds, and what each rank spent by name: aggregate, dense, pack, wait."""

    seconds: float
    spent: list[dict[str, float]]


@dataclass(eq=False, slots=True)
class _Started:
    """Something that can be waited for, and the ranks that stand still for it. Of many ranks there are millions."""

    done: bool = False
    waiting: tuple[int, ...] = ()


@dataclass(eq=False, slots=True)
class _Message:
    """`ends`: what the sender and the receiver wait for; None until that one has posted it."""

    num_bytes: int
    ends: list[_Started | None] = field(default_factory=lambda: [None, None])
    begun: bool = False
    arrived: bool = False


@dataclass(eq=False)
class _Sum:
    """A sum over ranks: each goes through the steps of the library's algorithm by itself.

        step k of rank r    send to rank r + distance(k), receive from rank r - distance(k), both modulo P
        the next step       once that message is there and the rank calls the library, or waits in it

    steps: (distance, bytes) of each step; joined: what each rank that has joined waits for; step: of each of them;
    arrived: (rank, step) of messages that have reached a rank.
    """

    steps: list[tuple[int, float]]
    joined: dict[int, _Started] = field(default_factory=dict)
    step: dict[int, int] = field(default_factory=dict)
    arrived: set[tuple[int, int]] = field(default_factory=set)


@dataclass(eq=False)
class _Rank:
    number: int
    epochs: list[list[Event]]
    epoch: int = 0
    place: int = 0
    time: float = 0.0
    computing: str = ""  # what
    since: float = 0.0  # that it waits
    moved_before: float = 0.0
    pending: list[_Started] = field(default_factory=list)
    started: list[list[_Started]] = field(default_factory=list)  # in each epoch
    num_sums: dict[int, int] = field(default_factory=dict)
    sums: list[_Sum] = field(default_factory=list)  # that it takes part in
    inside: bool = False  # the library, waiting
    called: bool = True  # since it last computed
    end: float = 0.0  # of the epoch
    ended: bool = False  # what is left is to gather the numbers of the epoch
    spent: dict[str, float] = field(default_factory=dict)

    def spend(self, name: str, seconds: float) -> None:
        self.spent[name] = self.spent.get(name, 0.0) + seconds


class Player:
    """One replay. Args: recordings: of all ranks, in order; with the same number of epochs."""

    def __init__(self, recordings: list[Recording], network: Network):
        self._network, self._num_ranks = network, len(recordings)
        longest = max(recording.compute_seconds(0) for recording in recordings)
        self._resolution = 0.0 if self._num_ranks <= EXACT_RANKS else longest * RESOLUTION
        self._flows = Flows(network, self._num_ranks, self._resolution)
        self._ranks = [_Rank(recording.rank, recording.epochs) for recording in recordings]
        self._agenda: list[tuple[float, int, Happening]] = []
        self._order = 0
        self._messages: dict[tuple, list[_Message]] = {}
        self._sums: dict[tuple[int, int], _Sum] = {}
        self._moving: dict[int, Happening] = {}  # what happens when a message has arrived
        self._running = 0

    def play(self) -> list[PlayedEpoch]:
        """All epochs, one after the other."""
        played: list[PlayedEpoch] = []
        start = 0.0
        for number in range(len(self._ranks[0].epochs)):
            for rank in self._ranks:
                rank.epoch, rank.place, rank.spent, rank.time, rank.ended = number, 0, {}, start, False
                rank.started.append([])
                self._later(start, partial(self._go_on, rank))
            self._run_epoch()
            seconds = max(rank.end for rank in self._ranks) - start
            played.append(PlayedEpoch(seconds, [rank.spent for rank in self._ranks]))
            start = max(rank.time for rank in self._ranks)
        return played

    def _later(self, time: float, what: Happening) -> None:
        self._order += 1
        heapq.heappush(self._agenda, (time, self._order, what))

    def _move(self, source: int, target: int, num_bytes: float, arrived: Happening, time: float) -> None:
        """A message begins to move."""
        self._order += 1
        self._moving[self._order] = arrived
        self._flows.start(self._order, source, target, num_bytes)

    def _run_epoch(self) -> None:
        """Until every rank has ended its epoch and has the numbers of all."""
        self._running = self._num_ranks
        while self._running:
            planned = self._agenda[0][0] if self._agenda else NEVER
            if planned <= self._flows.now + self._resolution:  # rates do not matter within one instant
                time, _, what = heapq.heappop(self._agenda)
                what(time)
                continue
            time = min(self._flows.next_arrival(), planned)
            if time == NEVER:
                waiting = (f"rank {rank.number} at event {rank.place}" for rank in self._ranks if rank.pending)
                raise RuntimeError(f"the replay stands still: {', '.join(waiting)}")
            self._flows.advance(time)
            for name in self._flows.take_arrived():
                self._moving.pop(name)(time)

    # A rank

    def _go_on(self, rank: _Rank, time: float) -> None:
        """Run a rank's events until it computes, waits, or has ended the epoch."""
        rank.time = max(rank.time, time)
        if rank.computing:
            # What moved while the rank computed took some of its time: then it computes on
            moved = self._flows.moved[rank.number]
            taken, rank.moved_before = (moved - rank.moved_before) * self._network.byte_seconds, moved
            if taken > 1e-7:
                rank.spend(rank.computing, taken)
                self._later(rank.time + taken, partial(self._go_on, rank))
                return
            rank.computing = ""
        if rank.ended:
            self._running -= 1
            return
        events = rank.epochs[rank.epoch]
        while rank.place < len(events):
            event = events[rank.place]
            rank.place += 1
            if event[0] == "compute":
                self._compute(rank, event[1], event[2])
                return
            if event[0] == "wait":
                wanted = [rank.started[rank.epoch - age][place] for age, place in event[1] if 0 <= age <= rank.epoch]
                if self._stops(rank, wanted):
                    return
            elif event[0] == "sum":
                rank.started[-1].append(self._join(rank, event[1], event[2]))
            elif event[0] != "progress":
                self._post(rank, event)
            self._call(rank)
        rank.end, rank.ended = rank.time, True
        if not self._stops(rank, [self._join(rank, GATHER_CHANNEL, GATHER_BYTES)]):
            self._running -= 1

    def _call(self, rank: _Rank) -> None:
        if not rank.called:
            rank.called = True
            self._go_on_with_sums(rank, rank.time)

    def _compute(self, rank: _Rank, name: str, seconds: float) -> None:
        rank.spend(name, seconds)
        rank.computing, rank.moved_before = name, self._flows.moved[rank.number]
        if rank.called:
            rank.called = False
            self._flows.calls(rank.number, stays=False)
        self._later(rank.time + seconds, partial(self._go_on, rank))

    def _stops(self, rank: _Rank, wanted: list[_Started]) -> bool:
        self._call(rank)
        rank.pending = [one for one in wanted if not one.done]
        for one in rank.pending:
            if rank.number not in one.waiting:
                one.waiting += (rank.number,)
        if rank.pending:
            rank.since, rank.inside = rank.time, True
            self._flows.calls(rank.number, stays=True)
        return bool(rank.pending)

    def _complete(self, one: _Started, time: float) -> None:
        """Something is complete; ranks for which it was the last go on."""
        one.done = True
        for number in one.waiting:
            rank = self._ranks[number]
            rank.pending = [other for other in rank.pending if other is not one]
            if not rank.pending:
                end = max(time, rank.time)
                rank.inside, rank.called = False, True
                if not rank.ended:
                    rank.spend("wait", end - rank.since)
                self._later(end, partial(self._go_on, rank))
        one.waiting = ()

    # Messages

    def _post(self, rank: _Rank, event: Event) -> None:
        """A rank's end of a message: the other end may be there already."""
        kind, call, other, num_bytes = event
        rank.time += self._network.overhead
        end = 0 if kind == "send" else 1
        source, target = pair = (rank.number, other) if end == 0 else (other, rank.number)
        halves = self._messages.setdefault((rank.epoch, call, *pair), [])
        if halves and halves[0].ends[end] is None:
            message = halves.pop(0)
            if not halves:
                del self._messages[rank.epoch, call, source, target]
        else:
            message = _Message(num_bytes)
            halves.append(message)
        started = message.ends[end] = _Started()
        rank.started[-1].append(started)
        # It goes once its sender is there and, where it is large, its receiver
        sent, received = message.ends
        small = message.num_bytes <= self._network.eager_bytes
        if message.begun and received is not None:
            received.done = message.arrived
        elif sent is not None and (small or received is not None):
            message.begun, sent.done = True, small
            begin = partial(self._move, source, target, message.num_bytes, partial(self._arrived, message))
            self._later(rank.time + self._network.latency_between(source, target), begin)

    def _arrived(self, message: _Message, time: float) -> None:
        message.arrived = True
        for one in message.ends:
            if one is not None and not one.done:
                self._complete(one, time)

    # Sums over ranks

    def _join(self, rank: _Rank, channel: int, num_bytes: int) -> _Started:
        rank.time += self._network.overhead
        number = rank.num_sums[channel] = rank.num_sums.get(channel, -1) + 1
        if (channel, number) not in self._sums:
            self._sums[channel, number] = _Sum(sum_steps(self._num_ranks, num_bytes))
        one = self._sums[channel, number]
        started = one.joined[rank.number] = _Started()
        one.step[rank.number] = -1
        rank.sums.append(one)
        if len(one.joined) == self._num_ranks:
            del self._sums[channel, number]
        self._go_on_with_sums(rank, rank.time)
        return started

    def _go_on_with_sums(self, rank: _Rank, time: float) -> None:
        """A rank is in the library: its sums take the steps that are open to them."""
        for one in list(rank.sums):
            while one.step[rank.number] < 0 or (rank.number, one.step[rank.number]) in one.arrived:
                step = one.step[rank.number] = one.step[rank.number] + 1
                if step < len(one.steps):
                    distance, num_bytes = one.steps[step]
                    pair = rank.number, (rank.number + distance) % self._num_ranks
                    latency = self._network.latency_between(*pair) + 2 * self._network.overhead
                    begin = partial(self._move, *pair, num_bytes, partial(self._sum_arrived, one, step, pair[1]))
                    self._later(time + latency, begin)
            if one.step[rank.number] == len(one.steps):
                rank.sums.remove(one)
                self._complete(one.joined[rank.number], time)

    def _sum_arrived(self, one: _Sum, step: int, target: int, time: float) -> None:
        one.arrived.add((target, step))
        if self._ranks[target].inside:
            self._go_on_with_sums(self._ranks[target], time)
