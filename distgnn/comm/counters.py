"""What an epoch's parts cost one rank: bytes and seconds, counted where they are spent."""

import time
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace


@dataclass
class Counters:
    """Running totals since the start of the process, of one rank."""

    sent_bytes: int = 0
    wait_seconds: float = 0.0
    pack_seconds: float = 0.0
    aggregate_seconds: float = 0.0

    @contextmanager
    def timing(self, name: str):
        """Add the time of a block to the total `name`."""
        started = time.perf_counter()
        try:
            yield
        finally:
            setattr(self, name, getattr(self, name) + time.perf_counter() - started)

    def copy(self) -> "Counters":
        """The totals of now."""
        return replace(self)

    def since(self, before: "Counters") -> dict[str, float]:
        """What was added since the copy `before` was made."""
        return {name: value - getattr(before, name) for name, value in asdict(self).items()}
