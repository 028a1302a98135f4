"""A replay drawn: every rank's epoch by phase, and the predicted epochs as a timeline of all ranks."""

import json
from pathlib import Path
from typing import Any

from distgnn.replay.player import PlayedEpoch
from distgnn.report.charts import block_style, legend_beside, save, styled
from distgnn.system.atomic import replace_file
from distgnn.train.run.trace import trace_event

COLUMNS = ("aggregate", "dense", "pack", "wait")


@styled()
def draw(outcomes: list[dict[str, Any]], folder: Path) -> list[Path]:
    """FOLDER/replay.png and .svg: a panel for each network that was played; returns the files."""
    from matplotlib.figure import Figure

    folder.mkdir(parents=True, exist_ok=True)
    figure = Figure(figsize=(2.5 + 4.5 * len(outcomes), 4.5), layout="constrained")
    panels = figure.subplots(1, len(outcomes), squeeze=False, sharey=True)
    for panel, found in zip(panels[0], outcomes, strict=True):
        ranks = sorted(found["of_rank"], key=lambda rank: -rank["compute_seconds"])
        heights = [0.0] * len(ranks)
        for phase in COLUMNS:
            parts = [1000 * rank[f"{phase}_seconds"] for rank in ranks]
            panel.bar(range(len(ranks)), parts, bottom=heights, label=phase, width=1.0, **block_style(phase))
            heights = [height + part for height, part in zip(heights, parts, strict=True)]
        panel.axhline(1000 * found["epoch_seconds"], color="black", linewidth=1, linestyle=(0, (6, 3)))
        panel.set_title(f"{found['title']}\nepoch {1000 * found['epoch_seconds']:.3g} ms")
        panel.set_xlabel("ranks, the busiest first")
    panels[0][0].set_ylabel("ms per epoch, predicted")
    legend_beside(figure, panels[0][0])
    return save(figure, folder, "replay")


def write_trace(epochs: list[PlayedEpoch], path: Path) -> None:
    """Write {"traceEvents": […]} as `distgnn train --trace` does (Chrome, Perfetto): a process for each rank, times
    from the start of the first epoch."""
    origin, ranks = epochs[0].start, range(len(epochs[0].ends))
    events = [{"name": "process_name", "ph": "M", "pid": r, "tid": 0, "args": {"name": f"rank {r}"}} for r in ranks]
    for number, epoch in enumerate(epochs):
        for rank, spans in enumerate(epoch.spans):
            times = epoch.start - origin, epoch.ends[rank] - epoch.start
            events.append(trace_event(f"epoch {number}", "epoch", rank, *times))
            for span in spans:
                name = "all_reduce" if span.name == "wait" and span.call < 0 else span.name
                event = trace_event(name, "step", rank, span.start - origin, span.end - span.start)
                if span.name == "wait":
                    event["args"] = {"for rank": span.cause, "exchange": span.call}
                events.append(event)
    replace_file(path, json.dumps({"traceEvents": events}).encode())
