"""The predicted epochs as a timeline of all ranks, in the form of `distgnn train --trace` (Chrome, Perfetto)."""

import json
from pathlib import Path
from typing import Any

from distgnn.replay.player import PlayedEpoch
from distgnn.system.atomic import replace_file


def write_trace(epochs: list[PlayedEpoch], path: Path) -> None:
    """Write {"traceEvents": […]}: a process for each rank, times from the start of the first epoch."""
    origin = epochs[0].start
    events: list[dict[str, Any]] = []
    for rank in range(len(epochs[0].ends)):
        events.append({"name": "process_name", "ph": "M", "pid": rank, "tid": 0, "args": {"name": f"rank {rank}"}})
    for number, epoch in enumerate(epochs):
        for rank, spans in enumerate(epoch.spans):
            events.append(
                _event(f"epoch {number}", "epoch", rank, epoch.start - origin, epoch.ends[rank] - epoch.start)
            )
            for span in spans:
                name = "all_reduce" if span.name == "wait" and span.call < 0 else span.name
                event = _event(name, "step", rank, span.start - origin, span.end - span.start)
                if span.name == "wait":
                    event["args"] = {"for rank": span.cause, "exchange": span.call}
                events.append(event)
    replace_file(path, json.dumps({"traceEvents": events}).encode())


def _event(name: str, category: str, rank: int, start: float, seconds: float) -> dict[str, Any]:
    times = {"ts": round(1e6 * start, 1), "dur": round(1e6 * seconds, 1)}
    return {"name": name, "cat": category, "ph": "X", **times, "pid": rank, "tid": 0}
