"""A replay in numbers, a figure and a trace.

Numbers: the epoch, what it is made of; bytes, memory and waiting of each rank; the chain that makes the epoch as long
as it is.

Backwards from the end: a rank computed since it last waited; that wait ended when a message arrived, which was on its
way since the later of its two ranks was ready; so on with that rank, until the epoch's start.
"""

import json
import statistics
from bisect import bisect_left
from functools import partial
from pathlib import Path
from typing import Any

from distgnn.extras.replay.network import Network
from distgnn.extras.replay.player import PlayedEpoch, Player, Span
from distgnn.extras.replay.recording import Recording
from distgnn.system.atomic import replace_file
from distgnn.system.plots import legend_beside, save, stack, styled
from distgnn.train.run.trace import trace_event

NAMES = ("aggregate", "dense", "pack")
EPSILON = 1e-9
MOST_LINKS = 12  # of a chain that are shown


def critical_path(epoch: PlayedEpoch) -> list[Span]:
    """The chain, first link first; its links fill the epoch without a gap.

    A link is a rank's computation ("aggregate", …), or "network": what it waits for from rank `cause`.
    """
    rank = max(range(len(epoch.ends)), key=epoch.ends.__getitem__)
    time = epoch.ends[rank]
    chain: list[Span] = []
    most = 2 * sum(map(len, epoch.spans)) + 2
    while time > epoch.start + EPSILON and len(chain) < most:
        spans = epoch.spans[rank]
        place = bisect_left(spans, time - EPSILON, key=lambda span: span.start)  # the spans that began before
        if place == 0:
            chain.append(Span(rank, "network", epoch.start, time))
            break
        span = spans[place - 1]
        if span.end < time - EPSILON:  # between two spans a rank posts its messages
            chain.append(Span(rank, "post", span.end, time))
            time = span.end
        elif span.name != "wait":
            chain.append(Span(rank, span.name, span.start, time))
            time = span.start
        else:
            since = min(max(span.cause_time, epoch.start), time)
            chain.append(Span(rank, "network", since, time, span.cause, call=span.call))
            rank, time = (span.cause if span.cause >= 0 else rank), since
    return chain[::-1]


def replay(recordings: list[Recording], network: Network) -> tuple[dict[str, Any], list[PlayedEpoch]]:
    """Play the recordings of all ranks; returns the numbers (JSON of `distgnn replay`), the mean over a cycle of
    epochs, and the played epochs."""
    epochs = Player(recordings, network).play()
    seconds = statistics.fmean(epoch.seconds for epoch in epochs)
    chains = [critical_path(epoch) for epoch in epochs]
    of_chains: dict[str, float] = {}
    for link in (link for chain in chains for link in chain):
        of_chains[link.name] = of_chains.get(link.name, 0.0) + link.seconds
    ranks = [_of_rank(recording, epochs) for recording in recordings]
    alone = statistics.fmean(rank["compute_seconds"] for rank in ranks)
    bytes_of_epochs = zip(*([sum(of_epoch) for of_epoch in one.sent_to] for one in recordings), strict=True)
    pair_bytes = [[int(statistics.median(n)) for n in zip(*one.sent_to, strict=True)] for one in recordings]
    numbers = {
        "ranks": len(recordings),
        "threads": recordings[0].threads,
        "epoch_seconds": seconds,
        "epochs_seconds": [epoch.seconds for epoch in epochs],
        "compute_seconds": {"mean": alone, "max": max(rank["compute_seconds"] for rank in ranks)},
        "efficiency": alone / seconds if seconds else 1.0,
        "sent_bytes_per_epoch": int(statistics.median(map(sum, bytes_of_epochs))),
        "max_rank_sent_bytes": max(rank["sent_bytes"] for rank in ranks),
        "pair_bytes_per_epoch": pair_bytes,  # the median over the epochs of a cycle, as a run's summary has it
        "peak_rss_bytes": [recording.peak_rss_bytes for recording in recordings],
        "critical_path": {name: value / len(chains) for name, value in of_chains.items()},
        "critical_links": _longest(chains[-1]),
        "waits": _waits_by_call(epochs[-1]),
        "of_rank": ranks,
        "network": network.as_dict(),
    }
    return numbers, epochs


def _of_rank(recording: Recording, epochs: list[PlayedEpoch]) -> dict[str, Any]:
    spent = dict.fromkeys((*NAMES, "wait"), 0.0)
    for epoch in epochs:
        for span in epoch.spans[recording.rank]:
            spent[span.name] = spent.get(span.name, 0.0) + span.seconds / len(epochs)
    return {
        "rank": recording.rank,
        "compute_seconds": recording.compute_seconds(),
        **{f"{name}_seconds": value for name, value in spent.items()},
        "sent_bytes": int(recording.sent_bytes()),
        "peak_rss_bytes": recording.peak_rss_bytes,
        "estimated_bytes": recording.estimated_bytes,
    }


def _waits_by_call(epoch: PlayedEpoch) -> list[dict[str, Any]]:
    """Seconds waited for each exchange of the step: mean and maximum over ranks; call -1 is the sum of gradients."""
    found: dict[int, dict[int, float]] = {}
    for span in (span for spans in epoch.spans for span in spans if span.name == "wait"):
        of_call = found.setdefault(span.call, {})
        of_call[span.rank] = of_call.get(span.rank, 0.0) + span.seconds
    return [
        {"call": call, "mean_seconds": sum(of.values()) / len(epoch.spans), "max_seconds": max(of.values())}
        for call, of in sorted(found.items())
    ]


def _longest(chain: list[Span]) -> list[dict[str, Any]]:
    """The longest links of a chain, in order of time; neighbours of one rank and name count as one."""
    merged: list[Span] = []
    for link in chain:
        last = merged[-1] if merged else None
        if last and (last.rank, last.name, last.cause, last.call) == (link.rank, link.name, link.cause, link.call):
            merged[-1] = last._replace(end=link.end)
        else:
            merged.append(link)
    kept = sorted(merged, key=lambda link: -link.seconds)[:MOST_LINKS]
    found = [link._asdict() | {"seconds": link.seconds} for link in sorted(kept, key=lambda link: link.start)]
    return [{name: value for name, value in link.items() if name != "cause_time"} for link in found]


@styled()
def draw(outcomes: list[dict[str, Any]], folder: Path) -> list[Path]:
    """FOLDER/replay.png and .svg: a panel for each network that was played; returns the files."""
    from matplotlib.figure import Figure

    folder.mkdir(parents=True, exist_ok=True)
    figure = Figure(figsize=(2.5 + 4.5 * len(outcomes), 4.5), layout="constrained")
    panels = figure.subplots(1, len(outcomes), squeeze=False, sharey=True)
    for panel, found in zip(panels[0], outcomes, strict=True):
        ranks = sorted(found["of_rank"], key=lambda rank: -rank["compute_seconds"])
        rows = [("", {phase: 1000 * rank[f"{phase}_seconds"] for phase in (*NAMES, "wait")}) for rank in ranks]
        stack(partial(panel.bar, width=1.0), "bottom", rows)
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
                event = trace_event(name, "step", rank, span.start - origin, span.seconds)
                if span.name == "wait":
                    event["args"] = {"for rank": span.cause, "exchange": span.call}
                events.append(event)
    replace_file(path, json.dumps({"traceEvents": events}).encode())
