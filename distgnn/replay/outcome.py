"""A replay in numbers: the epoch, what it is made of, bytes, memory and waiting of each rank."""

import statistics
from typing import Any

from distgnn.replay.critical_path import Link, critical_path, shares
from distgnn.replay.network import Network
from distgnn.replay.player import PlayedEpoch, Player
from distgnn.replay.recording import Recording

NAMES = ("aggregate", "dense", "pack")


def replay(recordings: list[Recording], network: Network) -> tuple[dict[str, Any], list[PlayedEpoch]]:
    """Play the recordings of all ranks; returns the numbers (JSON of `distgnn replay`) and the played epochs."""
    epochs = Player(recordings, network).play()
    return outcome(recordings, network, epochs), epochs


def outcome(recordings: list[Recording], network: Network, epochs: list[PlayedEpoch]) -> dict[str, Any]:
    """The numbers of played epochs, the mean over a cycle of them."""
    seconds = statistics.fmean(epoch.seconds for epoch in epochs)
    chains = [critical_path(epoch) for epoch in epochs]
    ranks = [_of_rank(recording, epochs) for recording in recordings]
    alone = statistics.fmean(rank["compute_seconds"] for rank in ranks)
    return {
        "ranks": len(recordings),
        "threads": recordings[0].threads,
        "epoch_seconds": seconds,
        "epochs_seconds": [epoch.seconds for epoch in epochs],
        "compute_seconds": {"mean": alone, "max": max(rank["compute_seconds"] for rank in ranks)},
        "efficiency": alone / seconds if seconds else 1.0,
        "sent_bytes_per_epoch": int(
            statistics.median(map(sum, zip(*(_bytes(one) for one in recordings), strict=True)))
        ),
        "max_rank_sent_bytes": max(rank["sent_bytes"] for rank in ranks),
        "pair_bytes_per_epoch": [_median_bytes(recording) for recording in recordings],
        "peak_rss_bytes": [recording.peak_rss_bytes for recording in recordings],
        "critical_path": {
            name: value / len(chains) for name, value in shares([one for c in chains for one in c]).items()
        },
        "critical_links": [link.as_dict() for link in longest(chains[-1])],
        "waits": waits_by_call(epochs[-1]),
        "of_rank": ranks,
        "network": network.as_dict(),
    }


def _bytes(recording: Recording) -> list[int]:
    return [sum(of_epoch) for of_epoch in recording.sent_to]


def _median_bytes(recording: Recording) -> list[int]:
    """Bytes to each rank, the median over the epochs of a cycle, as a run's summary has them."""
    return [int(statistics.median(counts)) for counts in zip(*recording.sent_to, strict=True)]


def _of_rank(recording: Recording, epochs: list[PlayedEpoch]) -> dict[str, Any]:
    rank = recording.rank
    spent = dict.fromkeys((*NAMES, "wait"), 0.0)
    for epoch in epochs:
        for span in epoch.spans[rank]:
            spent[span.name] = spent.get(span.name, 0.0) + (span.end - span.start) / len(epochs)
    return {
        "rank": rank,
        "compute_seconds": recording.compute_seconds(),
        **{f"{name}_seconds": value for name, value in spent.items()},
        "sent_bytes": int(recording.sent_bytes()),
        "peak_rss_bytes": recording.peak_rss_bytes,
        "estimated_bytes": recording.estimated_bytes,
    }


def waits_by_call(epoch: PlayedEpoch) -> list[dict[str, Any]]:
    """Seconds waited for each exchange of the step: mean and maximum over ranks; call -1 is the sum of gradients."""
    found: dict[int, dict[int, float]] = {}
    for spans in epoch.spans:
        for span in spans:
            if span.name == "wait":
                of_call = found.setdefault(span.call, {})
                of_call[span.rank] = of_call.get(span.rank, 0.0) + span.end - span.start
    num_ranks = len(epoch.spans)
    return [
        {"call": call, "mean_seconds": sum(of.values()) / num_ranks, "max_seconds": max(of.values())}
        for call, of in sorted(found.items())
    ]


def longest(chain: list[Link], count: int = 12) -> list[Link]:
    """The longest links of a chain, in order of time; neighbours of one rank and name count as one."""
    merged: list[Link] = []
    for link in chain:
        last = merged[-1] if merged else None
        if last and (last.rank, last.name, last.cause, last.call) == (link.rank, link.name, link.cause, link.call):
            merged[-1] = Link(link.rank, link.name, last.start, link.end, link.cause, link.call)
        else:
            merged.append(link)
    kept = sorted(merged, key=lambda link: -link.seconds)[:count]
    return sorted(kept, key=lambda link: link.start)
