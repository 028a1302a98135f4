"""What an epoch's parts cost one rank: bytes and seconds, counted where they are spent."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace


@dataclass
class Counters:
    """Running totals since the start of the process, of one rank.

    `trace`, where it is set, hears of every timed block: it is called with (name, start, end), seconds of
    `time.perf_counter`.
    """

    sent_bytes: int = 0
    bytes_between_nodes: int = 0
    wait_seconds: float = 0.0
    pack_seconds: float = 0.0
    aggregate_seconds: float = 0.0
    all_reduce_seconds: float = 0.0

    def __post_init__(self) -> None:  # no field: totals are copied and subtracted, this is not
        self.trace: Callable[[str, float, float], None] | None = None

    @contextmanager
    def timing(self, name: str) -> Iterator[None]:
        """Add the time of a block to the total `name`."""
        started = time.perf_counter()
        try:
            yield
        finally:
            ended = time.perf_counter()
            setattr(self, name, getattr(self, name) + ended - started)
            if self.trace is not None:
                self.trace(name.removesuffix("_seconds"), started, ended)

    def copy(self) -> "Counters":
        return replace(self)

    def since(self, before: "Counters") -> dict[str, float]:
        """What was added since the copy `before` was made."""
        return {name: value - getattr(before, name) for name, value in asdict(self).items()}
