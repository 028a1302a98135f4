"""MemoryLedger: what a rank's memory is at its peak, block by block and by name.

A block is the memory of an array or a tensor that lives. The ledger asks the objects that hold them: nothing is counted
while it is off. `watch` looks every few milliseconds how much is in use. Where that is more than ever before, it notes
which blocks live now and how much of each is resident (/proc/self/pagemap). Pieces of the graph's buffers have the name
of the phase in which they were made, unless another owner, such as the kept aggregation, holds them.

    peak                      largest resident set of the process, as the kernel counts it (VmHWM)
    anonymous                 of what was resident at the peak, what no file stands behind (smaps_rollup)
    other tensors             what malloc had given out beyond named blocks, less the same at the end: torch's own
    freed memory              what malloc kept of freed blocks
    libraries                 pages of files, without those of the part
    interpreter               what is anonymous at the end, without named blocks and freed memory: with compiled kernels
    not accounted for         the peak without everything above it
"""

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, is_dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch

from distgnn.kernels import give_back_freed_memory
from distgnn.ops.buffers import Buffers
from distgnn.system.sizes import Resident, malloc_bytes, peak_resident_bytes, resident
from distgnn.system.units import human_bytes

OTHERS, FREED = "other tensors", "freed memory"
NAMES = (
    *("features", "kept aggregation", "structure", "activations", "working rows", "evaluation", "rows", "free rows"),
    *(OTHERS, FREED),
    *("halo rows", "messages", "held rows", "parameters and optimiser", "best weights", "libraries", "interpreter"),
)
REST = "not accounted for"
SECONDS = 0.002
GROWTH = 1.002  # a new peak is looked at from here on
PAGE = 4096
PRESENT, OF_FILE = np.uint64(1 << 63), np.uint64(1 << 61)  # of an entry of pagemap
OWN = ("distgnn", "partition", "kernels")  # packages whose objects are looked into

Named = Iterable[tuple[str, Any]]  # (name of a block, arrays or objects that hold them)


class Span(NamedTuple):
    """Bytes at an address."""

    first: int
    last: int


@dataclass
class MemoryReport:
    """Bytes of each rank at its peak. `blocks`: by name; `peak` and `anonymous`: of each rank.

    Example:
        >>> report = graph.memory_report()
        >>> report.blocks["features"][0] >= 60 * 8 * 4
        True
    """

    peak: list[int]
    anonymous: list[int]
    blocks: dict[str, list[int]] = field(default_factory=dict)

    @property
    def rest(self) -> list[int]:
        """What is not accounted for."""
        return [peak - sum(each) for peak, *each in zip(self.peak, *self.blocks.values(), strict=True)]

    def rows(self) -> list[tuple[str, str]]:
        """The table: each block on the rank that has most of it, and its share of that rank's peak."""
        lines = {"peak": self.peak, "of it anonymous": self.anonymous} | self.blocks | {REST: self.rest}
        return [(name, self._cell(values)) for name, values in lines.items() if any(values)]

    def _cell(self, values: list[int]) -> str:
        rank = max(range(len(values)), key=lambda one: values[one])
        where = f" on rank {rank}" if len(values) > 1 else ""
        return f"{human_bytes(values[rank])}, {100 * values[rank] / self.peak[rank]:.1f} %{where}"

    def as_dict(self) -> dict[str, Any]:
        """As summary.json has it."""
        return {"peak": self.peak, "anonymous": self.anonymous, "blocks": self.blocks | {REST: self.rest}}

    def __repr__(self) -> str:
        """The table."""
        return "\n".join(f"{name:<26}{cell}" for name, cell in self.rows())


class MemoryLedger:
    """The ledger of one rank.

    Args: blocks: what lives now; the first name that a byte is given counts. idle_bytes: what is resident and not used.
    """

    def __init__(self, blocks: Callable[[], Named], idle_bytes: Callable[[], int]):
        self._idle_bytes = idle_bytes
        self._owners: list[Callable[[], Named]] = [blocks]
        self._at_peak: tuple[Resident, dict[str, int]] | None = None

    @contextmanager
    def watch(self, more: Callable[[], Named] = list) -> Iterator[None]:
        """Within, the blocks of the peak are noted; `more`: further blocks."""
        self._owners = [self._owners[0], more]
        self._at_peak = self._look()
        ended = threading.Event()
        watching = threading.Thread(target=self._watch, args=(ended,), daemon=True)
        watching.start()
        try:
            yield
        finally:
            ended.set()
            watching.join()

    def report(self, comm: Any) -> MemoryReport:
        """At the peak, if it was watched, else as it is now. Collective: yes."""
        now, found = self._at_peak or self._look()
        give_back_freed_memory()
        end, in_use = resident(exact=True).anonymous, malloc_bytes()
        named = sum(resident_in(one)[0] for _, one in self._spans())
        blocks = found | {"interpreter": max(end - named, 0), OTHERS: max(found[OTHERS] - (in_use - named), 0)}
        blocks |= {FREED: max(now.anonymous - found[FREED] - (end - in_use), 0)}
        ranks = comm.allgather((peak_resident_bytes(), now.anonymous, blocks))
        each = {name: [found[2].get(name, 0) for found in ranks] for name in NAMES}
        return MemoryReport([found[0] for found in ranks], [found[1] for found in ranks], each)

    def _watch(self, ended: threading.Event) -> None:
        most, seen = self._used(), resident().total
        while not ended.wait(SECONDS):
            used, now = self._used(), resident().total
            if used > GROWTH * most or (GROWTH * used > most and now > GROWTH * seen):
                self._at_peak, most, seen = self._look(), max(used, most), now

    def _used(self) -> int:
        return (malloc_bytes() or resident().total) - self._idle_bytes()

    def _look(self) -> tuple[Resident, dict[str, int]]:
        """What is resident now, and of each name."""
        in_use, spans, now = malloc_bytes(), self._spans(), resident(exact=True)
        found, of_files, others = dict.fromkeys(NAMES, 0), 0, in_use
        for name, span in spans:
            anonymous, of_file = resident_in(span)
            found[name] += anonymous + of_file
            of_files, others = of_files + of_file, others - anonymous
        return now, found | {"libraries": now.total - now.anonymous - of_files, OTHERS: others, FREED: in_use}

    def _spans(self) -> list[tuple[str, Span]]:
        """Spans of all blocks, none over another."""
        spans: list[tuple[str, Span]] = []
        seen: dict[int, Any] = {}
        for owner in self._owners:
            for name, holder in owner():
                spans += [(name, span) for span in _spans_in(holder, seen)]
        return apart(spans)


def resident_in(span: Span) -> tuple[int, int]:
    """Resident bytes of a span (anonymous, of files). Without a page table all is taken for anonymous."""
    size = span.last - span.first
    first, last = span.first // PAGE, -(-span.last // PAGE)
    try:
        with open("/proc/self/pagemap", "rb", buffering=0) as table:
            table.seek(8 * first)
            entries = np.frombuffer(table.read(8 * (last - first)), np.uint64)
    except OSError:
        return size, 0
    present = entries & PRESENT != 0
    of_file = int(np.count_nonzero(present & (entries & OF_FILE != 0)))
    anonymous = int(np.count_nonzero(present)) - of_file
    return size * anonymous // (last - first), size * of_file // (last - first)


def apart(spans: list[tuple[str, Span]]) -> list[tuple[str, Span]]:
    """The same spans without what an earlier one has."""
    cuts = sorted({place for _, span in spans for place in span})
    numbers = {place: number for number, place in enumerate(cuts)}
    owners: list[int | None] = [None] * len(cuts)
    for which, (_, span) in reversed(list(enumerate(spans))):
        first, last = numbers[span.first], numbers[span.last]
        owners[first:last] = [which] * (last - first)
    pieces = zip(pairwise(cuts), owners, strict=False)
    return [(spans[which][0], Span(*bounds)) for bounds, which in pieces if which is not None]


def blocks_of(graph: Any) -> Iterator[tuple[str, Any]]:
    """What a graph holds, by name. Pieces of its buffers count as what holds them before as what asked for them."""
    yield "features", (graph.feats, graph.local.feats)
    yield "kept aggregation", graph.constants
    for name, first, last in graph.buffers.living():
        yield name, Span(first, last)
    yield "structure", (graph.local, graph.part)
    yield from graph.exchanges.blocks()
    yield "halo rows", getattr(graph.model_rows, "group", None)
    yield "structure", list(vars(graph).values())


def _spans_in(holder: Any, seen: dict[int, Any]) -> Iterator[Span]:
    """Spans of the arrays that an object holds: in lists, tuples and dicts, and in attributes of objects of ours.

    Args: seen: objects that were looked into, kept alive so that their ids stay theirs.
    """
    waiting = [holder]
    while waiting:
        one = waiting.pop()
        if isinstance(one, Span):
            yield one
            continue
        if one is None or isinstance(one, (str, int, float, type, Buffers)) or id(one) in seen:
            continue
        seen[id(one)] = one
        if isinstance(one, np.ndarray):
            if one.nbytes:
                first = one.__array_interface__["data"][0]
                yield Span(first, first + one.nbytes)
        elif isinstance(one, torch.Tensor):
            waiting += _inside(one)
            storage = one.untyped_storage() if type(one) in (torch.Tensor, torch.nn.Parameter) else None
            if storage is not None and storage.nbytes():
                yield Span(storage.data_ptr(), storage.data_ptr() + storage.nbytes())
        else:
            waiting += _inside(one)


def _inside(one: Any) -> list[Any]:
    """What an object holds."""
    if isinstance(one, dict):
        return list(one.values())
    if isinstance(one, (list, tuple)):
        return list(one)
    if is_dataclass(one) and not isinstance(one, type):
        return [getattr(one, each.name) for each in fields(one)] + list(getattr(one, "__dict__", {}).values())
    ours = type(one).__module__.partition(".")[0] in OWN
    return list(vars(one).values()) if ours and hasattr(one, "__dict__") else []
