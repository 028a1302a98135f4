"""A timeline of training steps as Chrome and Perfetto read it: one JSON file of all ranks.

    RUN/trace/trace.json     {"traceEvents": [{"name", "ph": "X", "ts", "dur", "pid": rank, "tid": 0, …}, …]}

Events of a step: aggregate, pack, wait, all_reduce as they were timed, and dense for the time between them. Times are
microseconds of the wall clock, so that ranks lie over each other (as far as the clocks of their machines agree). Open
the file at https://ui.perfetto.dev or chrome://tracing: every rank is a process there.
"""

import json
import time
from typing import Any

import numpy as np

from distgnn.comm import gather_arrays


class Trace:
    """Collects timed blocks of one rank and writes them.

    Args: counters: of the rank's transport, of which every timed block comes here from now on; rank: process number.
    """

    def __init__(self, counters: Any, rank: int):
        self.rank = rank
        self._to_wall_clock = time.time() - time.perf_counter()
        self._blocks: list[tuple[str, float, float]] = []
        self._steps: list[tuple[int, float, float]] = []
        counters.trace = self.add

    def add(self, name: str, started: float, ended: float) -> None:
        """One timed block, in seconds of `time.perf_counter`."""
        self._blocks.append((name, started, ended))

    def add_step(self, epoch: int, started: float, ended: float) -> None:
        self._steps.append((epoch, started, ended))

    def events(self) -> list[dict[str, Any]]:
        """All events, in Chrome's trace format; what was timed outside of training steps is called evaluation."""
        blocks = sorted(self._blocks, key=lambda block: block[1])
        events = [self._event(f"epoch {epoch}", "epoch", *times) for epoch, *times in self._steps]
        next_block = 0
        for _, started, ended in self._steps:
            while next_block < len(blocks) and blocks[next_block][1] < started:
                events.append(self._event(blocks[next_block][0], "evaluation", *blocks[next_block][1:]))
                next_block += 1
            free = started
            while next_block < len(blocks) and blocks[next_block][1] < ended:
                name, first, last = blocks[next_block]
                if first > free:
                    events.append(self._event("dense", "step", free, first))
                events.append(self._event(name, "step", first, last))
                free = max(free, last)
                next_block += 1
            if ended > free:
                events.append(self._event("dense", "step", free, ended))
        events += [self._event(name, "evaluation", *times) for name, *times in blocks[next_block:]]
        return events

    def _event(self, name: str, category: str, started: float, ended: float) -> dict[str, Any]:
        return trace_event(name, category, self.rank, started + self._to_wall_clock, ended - started)

    def gather(self, comm: Any) -> bytes:
        """The events of all ranks as trace.json has them, on rank 0. Collective: yes."""
        name = {"name": "process_name", "ph": "M", "pid": self.rank, "tid": 0, "args": {"name": f"rank {self.rank}"}}
        mine = json.dumps([name, *self.events()])[1:-1].encode()
        every = gather_arrays(comm, np.frombuffer(mine, np.uint8)) or []
        return b'{"traceEvents": [' + b", ".join(one.data for one in every) + b"]}"


def trace_event(name: str, category: str, rank: int, start: float, seconds: float) -> dict[str, Any]:
    """An event of a rank in Chrome's form, from seconds."""
    times = {"ts": round(1e6 * start, 1), "dur": round(1e6 * seconds, 1)}
    return {"name": name, "cat": category, "ph": "X", **times, "pid": rank, "tid": 0}
