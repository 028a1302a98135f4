"""Epochs of ranks that share parts, written after a measured one: for columns.py, which says what is compared.

Legend: P ranks, t ranks of a group, Q = P / t parts, D width.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

HIDDEN, CLASSES = 256, 40
AGGREGATIONS = 4  # of an epoch, two in each direction; the first layer's is kept
INTO, BACK = 100, 200  # numbers of the all-to-alls before and after an aggregation, beside its exchanges'


@dataclass
class Cut:
    """A cut in numbers: arcs and owned rows of each part; rows [owner, holder] that a broadcast and a reduce move."""

    arcs: np.ndarray
    owned: np.ndarray
    sources: np.ndarray
    targets: np.ndarray

    def travelling(self) -> np.ndarray:
        """Rows that each part packs or adds in an aggregation, [P]."""
        return self.sources.sum(1) + self.targets.sum(1)


def read_cut(folder: Path) -> Cut:
    """The numbers of all parts."""
    from distgnn.partition import load_part, read_manifest

    count = read_manifest(folder)["num_parts"]
    found = Cut(np.zeros(count), np.zeros(count), np.zeros((count, count)), np.zeros((count, count)))
    for rank in range(count):
        part = load_part(folder, rank, check=False)
        found.arcs[rank], found.owned[rank] = part.num_arcs, part.num_owned
        found.sources[rank] = np.diff(part.plan.broadcast_indptr)
        found.targets[rank] = np.diff(part.plan.reduce_indptr)
    return found


def by_node(folder: Path, flat: Cut, per_node: int) -> Cut:
    """The messages of the node-aware exchange: a union per owner and other node, to its leader in turn."""
    from distgnn.partition import load_part

    count = len(flat.arcs)
    found = Cut(flat.arcs, flat.owned, flat.sources.copy(), flat.targets.copy())
    for owner in range(count):
        plan = load_part(folder, owner, check=False).plan
        for first in range(0, count, per_node):
            if first <= owner < first + per_node:
                continue
            leader, last = first + owner % per_node, first + per_node
            for matrix, rows, indptr in (
                (found.sources, plan.broadcast_rows, plan.broadcast_indptr),
                (found.targets, plan.reduce_rows, plan.reduce_indptr),
            ):
                matrix[owner, first:last] = 0
                matrix[owner, leader] = len(np.unique(rows[indptr[first] : indptr[last]]))
    return found


def recordings(measure: dict, loads: Cut, messages: Cut, t: int, whole: dict) -> tuple[list, Cut]:
    """Epochs of all ranks, after the example that was measured. `whole`: products of whole rows, and sums."""
    from distgnn.replay.recording import Recording

    events = skeleton(measure["events"])
    summed = [sum(event[2] for event in one["events"] if event[0] == "sum") for one in (whole, measure)]
    example = {name: sum(event[2] for event in events if event[:2] == ["compute", name]) for name in measure["prices"]}
    dense = whole["prices"]["dense"] / t
    found = []
    for part in range(len(loads.arcs)):
        seconds = {
            "aggregate": measure["prices"]["aggregate"] * loads.arcs[part],
            "pack": measure["prices"]["pack"] * loads.travelling()[part],
            "dense": dense * loads.owned[part],
        }
        factors = {name: seconds[name] / example[name] for name in seconds if example[name]}
        factors["sum"] = summed[0] / summed[1]
        for member in range(t):
            rank = _Rank(part, member, t, messages, factors, float(loads.owned[part]))
            found.append(Recording(rank.number, t * len(loads.arcs), [rank.epoch(events)]))
    return found, messages


def skeleton(events: list) -> list:
    """Events with messages by exchange: ["post", kind, call] and ["wait", [(kind, call) or ("sum", number)]]."""
    found: list = []
    started: list[tuple] = []
    for event in events:
        if event[0] in ("send", "receive"):
            started.append((event[0], event[1]))
            if started[-1] not in started[:-1]:
                found.append(["post", *started[-1]])
        elif event[0] == "sum":
            started.append(("sum", sum(one[0] == "sum" for one in started)))
            found.append([*started[-1], *event[1:]])
        elif event[0] == "wait":
            groups = dict.fromkeys(started[number] for age, number in event[1] if age == 0)
            if groups:
                found.append(["wait", list(groups)])
        else:
            found.append(list(event))
    return found


class _Rank:
    """Writes one rank's events. Even exchanges are broadcasts, odd ones reduces; the second half is backward."""

    def __init__(self, part: int, member: int, t: int, messages: Cut, factors: dict, owned: float):
        self.part, self.member, self.t = part, member, t
        self.messages, self.factors, self.owned = messages, factors, owned
        self.number = part * t + member
        self.events: list[tuple] = []
        self.started: dict[tuple, list[int]] = {}
        self.count = 0

    def epoch(self, skeleton_events: list) -> list[tuple]:
        """All events."""
        seen: set[int] = set()
        back = None
        for event in skeleton_events:
            if back is not None and not (event[0] == "compute" and event[1] == "pack"):
                self._all_to_all(BACK + back, back)
                back = None
            if event[0] == "compute":
                self.events.append(("compute", event[1], event[2] * self.factors.get(event[1], 1.0)))
            elif event[0] == "sum":
                _, number, channel, num_bytes = event
                self._start(("sum", number), [("sum", channel, num_bytes * self.factors["sum"])])
            elif event[0] == "post":
                if event[2] % 2 == 0 and event[2] not in seen:
                    seen.add(event[2])
                    self._all_to_all(INTO + event[2], event[2])
                self._start((event[1], event[2]), self._messages(event[1], event[2]))
            elif event[0] == "progress":
                self.events.append(event)
            else:
                self._wait([tuple(one) for one in event[1]])
                reduced = [call for kind, call in event[1] if kind == "receive" and call % 2]
                back = reduced[0] if reduced else None
        return self.events

    def _messages(self, kind: str, call: int) -> list[tuple]:
        """Of one exchange, those that the rank sends, or receives."""
        backward = call >= AGGREGATIONS
        rows = self.messages.targets if (call % 2 == 1) != backward else self.messages.sources
        is_owner = (call % 2 == 0) == (kind == "send")
        counts = rows[self.part] if is_owner else rows[:, self.part]
        others = np.flatnonzero(counts)
        row_bytes = self._row_bytes(call)
        return [(kind, call, int(one) * self.t + self.member, float(counts[one]) * row_bytes) for one in others]

    def _row_bytes(self, call: int) -> float:
        """The first and the last aggregation are of hidden rows, the others of classes."""
        return 4 * (HIDDEN if call // 2 in (0, AGGREGATIONS - 1) else CLASSES) / self.t

    def _all_to_all(self, number: int, call: int) -> None:
        if self.t == 1:
            return
        share = self.owned / self.t * self._row_bytes(call)
        peers = [self.part * self.t + one for one in range(self.t) if one != self.member]
        for kind in ("receive", "send"):
            self._start((kind, number), [(kind, number, peer, share) for peer in peers])
        self._wait([("receive", number), ("send", number)])

    def _start(self, name: tuple, events: list) -> None:
        self.events += [tuple(event) for event in events]
        self.started[name] = list(range(self.count, self.count + len(events)))
        self.count += len(events)

    def _wait(self, names: list[tuple]) -> None:
        wanted = [(0, number) for name in names for number in self.started.get(name, [])]
        if wanted:
            self.events.append(("wait", wanted))
