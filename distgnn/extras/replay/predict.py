"""The prediction: recorded epochs of all ranks, played through a network."""

import statistics
from dataclasses import asdict, dataclass
from typing import Any

from distgnn.extras.replay.network import Network
from distgnn.extras.replay.player import Player, Recording

PHASES = ("aggregate", "dense", "pack", "wait")
ERROR = 0.052  # of an epoch, in the median of the cases of docs/extras/replay.md


@dataclass(frozen=True)
class Predicted:
    """An epoch of all ranks.

    Args:
        seconds: the median of the recorded epochs, each played; of a late schedule the mean over its bins.
        low, high: the quickest and the slowest of them, wider by the median error beside real links.
        sent_bytes, messages: rows that all ranks send in an epoch, and in how many messages; without sums.
        phases: seconds, means over ranks: aggregate, dense, pack, wait.
        of_rank: for each rank "compute_seconds", "wait_seconds" and "peak_rss_bytes".
        pair_bytes: sent from each rank to each, in an epoch.
    """

    seconds: float
    low: float
    high: float
    sent_bytes: int
    messages: int
    phases: dict[str, float]
    of_rank: list[dict[str, float]]
    pair_bytes: list[list[int]]

    @property
    def efficiency(self) -> float:
        """Share of the epoch that ranks compute, on average."""
        return (sum(self.phases.values()) - self.phases["wait"]) / self.seconds if self.seconds else 1.0

    def as_dict(self) -> dict[str, Any]:
        return asdict(self) | {"efficiency": self.efficiency}


def epoch(recordings: list[Recording], network: Network) -> Predicted:
    """What an epoch takes over a network. Args: recordings: of all ranks, in order; for any number of networks."""
    cycle = recordings[0].cycle
    played = Player(recordings, network).play()
    first = cycle if len(played) > cycle else 0  # the first cycle waits for nothing that was sent before it
    counted = range(first, len(played))
    cycles = [statistics.fmean(one.seconds for one in played[at : at + cycle]) for at in counted[::cycle]]
    ranks = []
    for recording in recordings:
        spent = [played[number].spent[recording.rank] for number in counted]
        mean = {f"{name}_seconds": statistics.median(one.get(name, 0.0) for one in spent) for name in PHASES}
        compute = statistics.median(sum(one.values()) - one.get("wait", 0.0) for one in spent)
        ranks.append(mean | {"compute_seconds": compute, "peak_rss_bytes": recording.peak_rss_bytes})
    sent = [sum(sum(one.sent_to[number]) for one in recordings) for number in counted]
    messages = [sum(event[0] == "send" for one in recordings for event in one.epochs[number]) for number in counted]
    pairs = [
        [round(statistics.fmean(counts)) for counts in zip(*one.sent_to[first:], strict=True)] for one in recordings
    ]
    phases = {name: statistics.fmean(rank[f"{name}_seconds"] for rank in ranks) for name in PHASES}
    low, high = min(cycles) / (1 + ERROR), max(cycles) * (1 + ERROR)
    sizes = round(statistics.fmean(sent)), round(statistics.fmean(messages))
    return Predicted(statistics.median(cycles), low, high, *sizes, phases, ranks, pairs)
