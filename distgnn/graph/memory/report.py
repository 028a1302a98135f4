"""MemoryReport: blocks of all ranks at their peaks, as a table and as JSON."""

from dataclasses import dataclass, field
from typing import Any

from distgnn.system.units import human_bytes

REST = "not accounted for"


@dataclass
class MemoryReport:
    """Bytes of each rank at its peak. `blocks`: by name; `peak` and `anonymous`: of each rank.

    Example:
        >>> report = graph.memory_report()
        >>> report.blocks["features"][0] >= 60 * 8 * 4
        True
    """

    peak: list[int]
    anonymous: list[int]
    blocks: dict[str, list[int]] = field(default_factory=dict)

    @property
    def rest(self) -> list[int]:
        """What is not accounted for."""
        return [peak - sum(each) for peak, *each in zip(self.peak, *self.blocks.values(), strict=True)]

    def rows(self) -> list[tuple[str, str]]:
        """The table: each block on the rank that has most of it, and its share of that rank's peak."""
        lines = {"peak": self.peak, "of it anonymous": self.anonymous} | self.blocks | {REST: self.rest}
        return [(name, self._cell(values)) for name, values in lines.items() if any(values)]

    def _cell(self, values: list[int]) -> str:
        rank = max(range(len(values)), key=lambda one: values[one])
        where = f" on rank {rank}" if len(values) > 1 else ""
        return f"{human_bytes(values[rank])}, {100 * values[rank] / self.peak[rank]:.1f} %{where}"

    def as_dict(self) -> dict[str, Any]:
        """As summary.json has it."""
        return {"peak": self.peak, "anonymous": self.anonymous, "blocks": self.blocks | {REST: self.rest}}

    def __repr__(self) -> str:
        """The table."""
        return "\n".join(f"{name:<26}{cell}" for name, cell in self.rows())
