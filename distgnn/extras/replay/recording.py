"""What one rank does in its training epochs, as lists of events: what is recorded, stored and played.

("compute", name, seconds)        between two calls of the library; name: aggregate, pack or dense
("send", call, rank, bytes)       starts: the number of the exchange in the step, the other rank
("receive", call, rank, bytes)
("sum", channel, bytes)           joins a sum over all ranks; one channel's run in one order on every rank
("wait", [(age, number), …])      until started things are complete: `number` counts what was started (sends,
                                  receives, sums) in the epoch `age` epochs ago
("progress",)                     calls the library, so that messages move
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from distgnn.errors import InputError
from distgnn.system.regular_file import read_text

Event = tuple[Any, ...]
FORMAT_VERSION = 1
KEY_FILE = "recordings.json"


@dataclass
class Recording:
    """One rank's epochs, one after the other as they were trained.

    Args: cycle: epochs after which a late schedule sends the same rows again; sent_to: bytes sent to each rank in each
        epoch; seconds: that each took here; peak_rss_bytes: of the process, an evaluation included.
    """

    rank: int
    num_ranks: int
    cycle: int
    epochs: list[list[Event]]
    sent_to: list[list[int]]
    seconds: list[float]
    peak_rss_bytes: int = 0
    threads: int = 1

    def compute_seconds(self, epoch: int) -> float:
        return sum(event[2] for event in self.epochs[epoch] if event[0] == "compute")

    @classmethod
    def from_json(cls, found: dict[str, Any]) -> "Recording":
        return cls(**found | {"epochs": [[tuple(event) for event in events] for events in found["epochs"]]})


def write_recordings(recordings: list[Recording], folder: Path, key: dict[str, Any]) -> None:
    """FOLDER/rank-0.json, … and, last, FOLDER/recordings.json with what they are of."""
    folder.mkdir(parents=True, exist_ok=True)
    for recording in recordings:
        (folder / f"rank-{recording.rank}.json").write_text(json.dumps(asdict(recording)))
    (folder / KEY_FILE).write_text(json.dumps({"format_version": FORMAT_VERSION, "ranks": len(recordings), "of": key}))


def read_recordings(folder: Path, key: dict[str, Any]) -> list[Recording] | None:
    """What `write_recordings` wrote; None where there is nothing yet."""
    try:
        found = json.loads(read_text(folder / KEY_FILE))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read {folder / KEY_FILE}: {error}") from None
    if not isinstance(found, dict) or found.get("of") != json.loads(json.dumps(key)):
        raise InputError(f"{folder} has recordings of another partition or other settings: name another folder")
    if found.get("format_version") != FORMAT_VERSION:
        raise InputError(f"{folder} has recordings of another version of this program: remove it and measure again")
    try:
        texts = [read_text(folder / f"rank-{rank}.json") for rank in range(found["ranks"])]
        return [Recording.from_json(json.loads(text)) for text in texts]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{folder} is damaged ({error}): remove it and measure again") from None
