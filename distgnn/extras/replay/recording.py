"""What one rank does in its training epochs, as lists of events: what is recorded and played.

("compute", name, seconds)        between two calls of the library; name: aggregate, pack or dense
("send", call, rank, bytes)       starts: the number of the exchange in the step, the other rank
("receive", call, rank, bytes)
("sum", channel, bytes)           joins a sum over all ranks; one channel's run in one order on every rank
("wait", [(age, number), …])      until started things are complete: `number` counts what was started (sends,
                                  receives, sums) in the epoch `age` epochs ago
("progress",)                     calls the library, so that messages move
"""

from dataclasses import dataclass
from typing import Any

Event = tuple[Any, ...]


@dataclass
class Recording:
    """One rank's epochs, one after the other as they were trained.

    Args: cycle: epochs after which a late schedule sends the same rows again; sent_to: bytes sent to each rank in each
        epoch; peak_rss_bytes: of the process, an evaluation included.
    """

    rank: int
    cycle: int
    epochs: list[list[Event]]
    sent_to: list[list[int]]
    peak_rss_bytes: int = 0

    def compute_seconds(self, epoch: int) -> float:
        return sum(event[2] for event in self.epochs[epoch] if event[0] == "compute")
