"""What one rank does in a training epoch, as a list of events: what is measured, stored and played.

("compute", name, seconds)        between two calls of the library; name: aggregate, pack or dense
("send", call, rank, bytes)       starts: the number of the exchange in the step, the other rank
("receive", call, rank, bytes)
("sum", channel, bytes)           joins a sum over all ranks; one channel's run in one order on every rank
("wait", [(age, number), …])      until started things are complete: `number` counts what was started (sends,
                                  receives, sums) in the epoch `age` epochs ago
("progress",)                     calls the library, so that messages move
"""

import json
import statistics
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from distgnn.errors import InputError
from distgnn.system.regular_file import read_text

Event = tuple[Any, ...]
FORMAT_VERSION = 1
KEY_FILE = "recordings.json"


@dataclass
class Recording:
    """One rank's epochs, one after the other as they repeat (a delayed schedule sends other rows in each).

    Args: epochs: lists of events; sent_to: bytes sent to each rank in each epoch; peak_rss_bytes: of the process.
    """

    rank: int
    num_ranks: int
    epochs: list[list[Event]]
    sent_to: list[list[int]] = field(default_factory=list)
    peak_rss_bytes: int = 0
    estimated_bytes: int = 0
    threads: int = 1

    def compute_seconds(self) -> float:
        """Seconds of an epoch that the rank computes and packs, on average."""
        return statistics.fmean(sum(event[2] for event in events if event[0] == "compute") for events in self.epochs)

    def sent_bytes(self) -> float:
        """Bytes of an epoch that the rank sends, on average: rows, without sums over ranks."""
        return statistics.fmean(sum(event[3] for event in events if event[0] == "send") for events in self.epochs)

    def to_json(self) -> dict[str, Any]:
        return {"format_version": FORMAT_VERSION} | asdict(self)

    @classmethod
    def from_json(cls, found: dict[str, Any]) -> "Recording":
        epochs = [[tuple(event) for event in events] for events in found["epochs"]]
        return cls(**{name: value for name, value in found.items() if name != "format_version"} | {"epochs": epochs})


def typical(repeats: list[list[Event]]) -> list[Event]:
    """One epoch from several of the same calls: between two calls, the computation of the repeat of median length."""
    split = []  # of each repeat: computation before, between and after its calls, and the calls
    for events in repeats:
        gaps: list[list[Event]] = [[]]
        for event in events:
            if event[0] == "compute":
                gaps[-1].append(event)
            else:
                gaps.append([])
        split.append((gaps, [event for event in events if event[0] != "compute"]))
    calls = split[0][1]
    kinds = [call[:3] for call in calls]
    alike = [gaps for gaps, others in split if [call[:3] for call in others] == kinds]
    merged: list[Event] = []
    for place in range(len(calls) + 1):
        choices = [gaps[place] for gaps in alike]
        lengths = [sum(event[2] for event in choice) for choice in choices]
        merged += choices[lengths.index(statistics.median_low(lengths))]
        merged += calls[place : place + 1]
    return merged


def write_recordings(recordings: list[Recording], folder: Path, key: dict[str, Any]) -> None:
    """FOLDER/rank-0.json, … and, last, FOLDER/recordings.json with what they are of."""
    folder.mkdir(parents=True, exist_ok=True)
    for recording in recordings:
        (folder / f"rank-{recording.rank}.json").write_text(json.dumps(recording.to_json()))
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
