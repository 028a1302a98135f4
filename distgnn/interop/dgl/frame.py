"""Frame: named columns over the rows of a graph, as `ndata` and `edata` show them."""

from collections.abc import Iterator, MutableMapping
from dataclasses import dataclass

import torch


class Frame(MutableMapping[str, torch.Tensor]):
    """A mapping from names to tensors that all have `num_rows` rows; `kind` names the rows in errors."""

    def __init__(self, num_rows: int, kind: str):
        self.num_rows = num_rows
        self.kind = kind
        self._columns: dict[str, torch.Tensor] = {}

    def __getitem__(self, name: str) -> torch.Tensor:
        if name not in self._columns:
            raise KeyError(f"no {self.kind} data named {name!r}; there are {sorted(self._columns)}")
        return self._columns[name]

    def __setitem__(self, name: str, column: torch.Tensor) -> None:
        if len(column) != self.num_rows:
            raise ValueError(f"{self.kind} data {name!r} has {len(column)} rows: this part has {self.num_rows}")
        self._columns[name] = column

    def __delitem__(self, name: str) -> None:
        del self._columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def copy(self) -> "Frame":
        """The same columns in a frame of their own: what is set there is not seen here."""
        other = Frame(self.num_rows, self.kind)
        other._columns = dict(self._columns)
        return other


@dataclass
class Frames:
    """The columns of a graph, over its vertices and over its arcs."""

    vertices: Frame
    arcs: Frame

    def copy(self) -> "Frames":
        """The same columns in frames of their own."""
        return Frames(self.vertices.copy(), self.arcs.copy())
