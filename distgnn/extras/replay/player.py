"""Plays the recorded epochs of all ranks through a network: a simulation from event to event.

    rank       runs its events one after the other; "wait" stops it until what it waits for is complete
    message    posted -> (its receiver asked for it, where it is large) -> latency -> moves at a fair rate -> arrived
    sum        joined -> the messages of the library's algorithm, one step after the other -> complete
    epoch      all ranks start it together (numbers are gathered after each) and it ends with the last of them

A send is complete when its message has arrived, or, where it is small, at once. While a rank computes, its messages
move at `overlap_bandwidth` at most, `buffer_bytes` of them between two calls of the library, and each byte that moves
takes `byte_seconds` from it.

Legend: P ranks.
"""

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import numpy as np

from distgnn.extras.replay.flows import NEVER, Flows, Links
from distgnn.extras.replay.network import Network, sum_steps
from distgnn.extras.replay.recording import Event, Recording

Happening = Callable[[float], None]  # at a time
GATHER_BYTES, GATHER_CHANNEL = 512, -1  # of a rank's numbers after an epoch


class Span(NamedTuple):
    """What a rank did from `start` to `end`; of a wait: which rank was last, since when it was on its way, and where
    in the epoch (the number of the exchange, -1 for a sum)."""

    rank: int
    name: str
    start: float
    end: float
    cause: int = -1
    cause_time: float = 0.0
    call: int = -1

    @property
    def seconds(self) -> float:
        return self.end - self.start


@dataclass
class PlayedEpoch:
    """One epoch: when it began and when each rank ended, and the spans of all ranks in order."""

    start: float
    ends: list[float]
    spans: list[list[Span]]

    @property
    def seconds(self) -> float:
        return max(self.ends) - self.start


@dataclass(eq=False, slots=True)
class _Started:
    """Something that can be waited for. `ready`: since when all that was needed for it was there, `by` whom; `waiting`:
    the ranks that stand still for it. Of many ranks there are millions."""

    call: int
    done: bool = False
    ready: float = 0.0
    by: int = -1
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
    computing: bool = False
    blocked_since: float = -1.0
    pending: list[_Started] = field(default_factory=list)
    started: list[list[_Started]] = field(default_factory=list)
    moved_before: float = 0.0
    spans: list[Span] = field(default_factory=list)
    num_sums: dict[int, int] = field(default_factory=dict)
    sums: list[_Sum] = field(default_factory=list)  # that it takes part in
    inside: bool = False  # the library, waiting
    called: bool = True  # since it last computed
    end: float = 0.0  # of the epoch
    ended: bool = False  # what is left is to gather the numbers of the epoch


class Player:
    """One replay. Args: recordings: of all ranks, in order; with the same number of epochs."""

    def __init__(self, recordings: list[Recording], network: Network):
        self.network: Network = network
        self.num_ranks: int = len(recordings)
        # Seconds within which arrivals count as one: 0 is exact
        longest = max(recording.compute_seconds() for recording in recordings)
        self._resolution = resolution = 0.0 if self.num_ranks <= 8 else longest / 2000
        self._moved = np.zeros(self.num_ranks)
        self._flows = Flows(Links(network, self.num_ranks), resolution, self._moved if network.byte_seconds else None)
        self._ranks = [_Rank(recording.rank, recording.epochs) for recording in recordings]
        self._cycle = len(recordings[0].epochs)
        self._agenda: list[tuple[float, int, Happening]] = []
        self._order = 0
        self._messages: dict[tuple, list[_Message]] = {}
        self._sums: dict[tuple[int, int], _Sum] = {}
        self._moving: dict[int, Happening] = {}  # what happens when a message has arrived
        self._running = 0

    def play(self) -> list[PlayedEpoch]:
        """The epochs of one cycle; of a delayed schedule after a cycle that fills the network."""
        played: list[PlayedEpoch] = []
        start = 0.0
        for number in range(self._cycle if self._cycle == 1 else 2 * self._cycle):
            for rank in self._ranks:
                rank.epoch, rank.place, rank.spans, rank.time, rank.ended = number, 0, [], start, False
                rank.started.append([])
                self._later(start, partial(self._go_on, rank))
            self._run_epoch()
            played.append(PlayedEpoch(start, [rank.end for rank in self._ranks], [r.spans for r in self._ranks]))
            start = max(rank.time for rank in self._ranks)
        return played[-self._cycle :]

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
        self._running = self.num_ranks
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

    def _arrived(self, message: _Message, time: float) -> None:
        message.arrived = True
        for one in message.ends:
            if one is not None and not one.done:
                self._complete(one, time)

    # A rank

    def _go_on(self, rank: _Rank, time: float) -> None:
        """Run a rank's events until it computes, waits, or has ended the epoch."""
        rank.time = max(rank.time, time)
        if rank.computing:
            # What moved while the rank computed took some of its time: then it computes on
            taken = (self._moved[rank.number] - rank.moved_before) * self.network.byte_seconds
            rank.moved_before = self._moved[rank.number]
            if taken > 1e-7:
                rank.spans[-1] = rank.spans[-1]._replace(end=rank.time + taken)
                self._later(rank.time + taken, partial(self._go_on, rank))
                return
            self._set_computing(rank, False)
        if rank.ended:
            self._running -= 1
            return
        events = rank.epochs[rank.epoch % self._cycle]
        while rank.place < len(events):
            event = events[rank.place]
            rank.place += 1
            if event[0] == "compute":
                self._compute(rank, event)
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

    def _compute(self, rank: _Rank, event: Event) -> None:
        _, name, seconds = event
        end = rank.time + seconds
        rank.spans.append(Span(rank.number, name, rank.time, end))
        self._set_computing(rank, True)
        rank.moved_before = self._moved[rank.number]
        if rank.called:
            rank.called = False
            self._flows.calls(rank.number, stays=False)
        self._later(end, partial(self._go_on, rank))

    def _set_computing(self, rank: _Rank, computing: bool) -> None:
        if rank.computing != computing:
            rank.computing = computing
            if self.network.overlap_bandwidth < self.network.rank_bandwidth:
                self._flows.set_computing(rank.number, computing)

    def _stops(self, rank: _Rank, wanted: list[_Started]) -> bool:
        self._call(rank)
        rank.pending = [one for one in wanted if not one.done]
        for one in rank.pending:
            if rank.number not in one.waiting:
                one.waiting += (rank.number,)
        rank.blocked_since = rank.time if rank.pending else -1.0
        if rank.pending:
            rank.inside = True
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
                    span = Span(number, "wait", rank.blocked_since, end, one.by, one.ready, one.call)
                    rank.spans.append(span)
                self._later(end, partial(self._go_on, rank))
        one.waiting = ()

    # Messages

    def _post(self, rank: _Rank, event: Event) -> None:
        """A rank's end of a message: the other end may be there already."""
        kind, call, other, num_bytes = event
        rank.time += self.network.overhead
        end = 0 if kind == "send" else 1
        pair = (rank.number, other) if end == 0 else (other, rank.number)
        key = (rank.epoch, call, *pair)
        halves = self._messages.setdefault(key, [])
        if halves and halves[0].ends[end] is None:
            message = halves.pop(0)
            if not halves:
                del self._messages[key]
        else:
            message = _Message(num_bytes)
            halves.append(message)
        started = message.ends[end] = _Started(call)
        rank.started[-1].append(started)
        # It goes once its sender is there and, where it is large, its receiver
        sent, received = message.ends
        small = message.num_bytes <= self.network.eager_bytes
        if message.begun and sent is not None and received is not None:
            received.ready, received.by, received.done = sent.ready, sent.by, message.arrived
        elif sent is not None and (small or received is not None):
            message.begun = True
            for one in filter(None, message.ends):
                one.ready, one.by = rank.time, rank.number
            sent.done = small
            source, target = pair
            begin = partial(self._move, source, target, message.num_bytes, partial(self._arrived, message))
            self._later(rank.time + self.network.latency_between(source, target), begin)

    # Sums over ranks

    def _join(self, rank: _Rank, channel: int, num_bytes: int) -> _Started:
        rank.time += self.network.overhead
        number = rank.num_sums[channel] = rank.num_sums.get(channel, -1) + 1
        if (channel, number) not in self._sums:
            self._sums[channel, number] = _Sum(sum_steps(self.network, self.num_ranks, num_bytes))
        one = self._sums[channel, number]
        started = _Started(-1)
        one.joined[rank.number], one.step[rank.number] = started, -1
        rank.sums.append(one)
        if len(one.joined) == self.num_ranks:
            del self._sums[channel, number]
            for joined in one.joined.values():
                joined.ready, joined.by = rank.time, rank.number
        self._go_on_with_sums(rank, rank.time)
        return started

    def _go_on_with_sums(self, rank: _Rank, time: float) -> None:
        """A rank is in the library: its sums take the steps that are open to them."""
        for one in list(rank.sums):
            while one.step[rank.number] < 0 or (rank.number, one.step[rank.number]) in one.arrived:
                step = one.step[rank.number] = one.step[rank.number] + 1
                if step < len(one.steps):
                    distance, num_bytes = one.steps[step]
                    pair = rank.number, (rank.number + distance) % self.num_ranks
                    latency = self.network.latency_between(*pair) + 2 * self.network.overhead
                    begin = partial(self._move, *pair, num_bytes, partial(self._sum_arrived, one, step, pair[1]))
                    self._later(time + latency, begin)
            if one.step[rank.number] == len(one.steps):
                rank.sums.remove(one)
                self._complete(one.joined[rank.number], time)

    def _sum_arrived(self, one: _Sum, step: int, target: int, time: float) -> None:
        one.arrived.add((target, step))
        if self._ranks[target].inside:
            self._go_on_with_sums(self._ranks[target], time)
