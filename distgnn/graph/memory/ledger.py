"""MemoryLedger: what a rank's memory is at its peak, block by block and by name.

A block is the memory of an array or a tensor that lives. The ledger asks the objects that hold them: nothing is counted
while it is off. `watch` looks every few milliseconds how much is in use. The trainer lets it `look` between the passes
of a step, too: a busy machine may not wake the watching thread there. Where more is in use than ever before, it notes
which blocks live now and how much of each is resident (/proc/self/pagemap). Pieces of the graph's buffers have the name
of the phase in which they were made, unless another owner, such as the kept aggregation, holds them.

    peak                      largest resident set of the process, as the kernel counts it (VmHWM)
    anonymous                 of what was resident at the peak, what no file stands behind (smaps_rollup)
    other tensors             what malloc had given out beyond named blocks, less the same at the end: torch's own
    freed memory              what malloc kept of freed blocks
    pages of files            with `--offload`, whose moment is that with most anonymous memory: what more was resident
    libraries                 pages of files, without the part's
    interpreter               what is anonymous at the end, without named blocks and freed memory: with compiled kernels
    not accounted for         the peak without everything above it
"""

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from distgnn.graph.memory.spans import Span, apart, resident_in, spans_in
from distgnn.kernels import give_back_freed_memory
from distgnn.system.units import Resident, human_bytes, malloc_bytes, peak_resident_bytes, resident

OTHERS, FREED, FILES, REST = "other tensors", "freed memory", "pages of files", "not accounted for"
NAMES = (
    *("features", "kept aggregation", "structure", "activations", "working rows", "evaluation", "rows", "free rows"),
    *(OTHERS, FREED, FILES),
    *("halo rows", "messages", "held rows", "parameters and optimiser", "best weights", "libraries", "interpreter"),
)
SECONDS = 0.002
GROWTH = 1.002  # a new peak is looked at from here on

Named = Iterable[tuple[str, Any]]  # (name of a block, arrays or objects that hold them)


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
        cells = []
        for name, values in lines.items():
            rank = max(range(len(values)), key=values.__getitem__)
            where = f" on rank {rank}" if len(values) > 1 else ""
            share = 100 * values[rank] / self.peak[rank]
            cells += [(name, f"{human_bytes(values[rank])}, {share:.1f} %{where}")] if any(values) else []
        return cells

    def as_dict(self) -> dict[str, Any]:
        """As summary.json has it."""
        return {"peak": self.peak, "anonymous": self.anonymous, "blocks": self.blocks | {REST: self.rest}}

    def __repr__(self) -> str:
        return "\n".join(f"{name:<26}{cell}" for name, cell in self.rows())


class MemoryLedger:
    """The ledger of one rank.

    Args: blocks: what lives now; the first name that a byte is given counts. idle_bytes: what is resident and not used.
        outside: does an address lie in memory that is not malloc's (with `--offload`)? Then all resident pages count.
    """

    def __init__(
        self, blocks: Callable[[], Named], idle_bytes: Callable[[], int], outside: Callable[[int], bool] | None = None
    ):
        self._idle_bytes = idle_bytes
        self._outside = outside
        self._owners: list[Callable[[], Named]] = [blocks]
        self._at_peak: tuple[Resident, dict[str, int]] | None = None
        self._most, self._seen = 0, 0  # bytes in use and resident, of the peak
        self._watching, self._lock = False, threading.Lock()

    @contextmanager
    def watch(self, more: Callable[[], Named] = list) -> Iterator[None]:
        """Within, the blocks of the peak are noted; `more`: further blocks."""
        self._owners = [self._owners[0], more]
        self._at_peak, self._most, self._seen = self._blocks_now(), self._used(), self._resident()
        ended = threading.Event()
        watching = threading.Thread(target=self._watch, args=(ended,), daemon=True)
        watching.start()
        self._watching = True
        try:
            yield
        finally:
            self._watching = False
            ended.set()
            watching.join()

    def look(self) -> None:
        """Note which blocks live, if it is watched and more is in use than ever before."""
        if not self._watching:
            return
        with self._lock:
            used, now = self._used(), self._resident()
            if used > GROWTH * self._most or (GROWTH * used > self._most and now > GROWTH * self._seen):
                self._at_peak, self._most, self._seen = self._blocks_now(), max(used, self._most), now

    def report(self, comm: Any) -> MemoryReport:
        """At the peak, if it was watched, else as it is now. Collective: yes."""
        now, found = self._at_peak or self._blocks_now()
        give_back_freed_memory()
        end, spans = resident(exact=True).anonymous, self._spans()
        in_use, named = self._in_use(spans), sum(resident_in(one)[0] for _, one in spans)
        blocks = found | {"interpreter": max(end - named, 0), OTHERS: max(found[OTHERS] - (in_use - named), 0)}
        blocks |= {FREED: max(now.anonymous - found[FREED] - (end - in_use), 0)}
        blocks |= {FILES: max(peak_resident_bytes() - now.total, 0) if self._outside is not None else 0}
        ranks = comm.allgather((peak_resident_bytes(), now.anonymous, blocks))
        each = {name: [found[2].get(name, 0) for found in ranks] for name in NAMES}
        return MemoryReport([found[0] for found in ranks], [found[1] for found in ranks], each)

    def _watch(self, ended: threading.Event) -> None:
        while not ended.wait(SECONDS):
            self.look()

    def _resident(self) -> int:
        """With `--offload` pages of files do not count: the kernel takes them when it needs memory."""
        return resident().total if self._outside is None else resident().anonymous

    def _used(self) -> int:
        if self._outside is not None:
            return self._resident()
        return (malloc_bytes() or resident().total) - self._idle_bytes()

    def _in_use(self, spans: list[tuple[str, Span]]) -> int:
        """What malloc has given out, and what is anonymous outside of it."""
        outside = self._outside or (lambda _: False)
        return malloc_bytes() + sum(resident_in(one)[0] for _, one in spans if outside(one.first))

    def _blocks_now(self) -> tuple[Resident, dict[str, int]]:
        """What is resident now, and of each name."""
        spans, now = self._spans(), resident(exact=True)
        found, of_files = dict.fromkeys(NAMES, 0), 0
        others = in_use = self._in_use(spans)
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
                spans += [(name, span) for span in spans_in(holder, seen)]
        return apart(spans)


def blocks_of(graph: Any) -> Iterator[tuple[str, Any]]:
    """What a graph holds, by name. Pieces of its buffers count as what holds them before as what asked for them."""
    yield "features", (graph.feats, graph.local.feats)
    yield "kept aggregation", graph.constants
    for name, first, last in graph.buffers.living():
        yield name, Span(first, last)
    yield "structure", graph.local
    yield from graph.exchanges.blocks()
    yield "structure", list(vars(graph).values())
