"""Frame: named columns over the rows of a graph, as `ndata` and `edata` show them."""

from collections.abc import Callable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import torch

from distgnn.errors import InputError


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


class ByType(MutableMapping[str, Any]):
    """Columns of several types: `graph.ndata["h"]` is a dict by type, of those that have it, and takes one."""

    def __init__(self, frames: Mapping[Any, MutableMapping[str, Any]], key_of: Callable[[Any], Any] = lambda key: key):
        self._frames, self._key_of = frames, key_of

    def __getitem__(self, name: str) -> dict[Any, Any]:
        found = {kind: frame[name] for kind, frame in self._frames.items() if name in frame}
        if not found:
            raise KeyError(f"no type has a column {name!r}; there are {list(self)}")
        return found

    def __setitem__(self, name: str, columns: Mapping[Any, Any]) -> None:
        if not isinstance(columns, Mapping):
            raise InputError(f"column {name!r} of several types: give a dict of rows by type")
        for kind, column in columns.items():
            self._frames[self._key_of(kind)][name] = column

    def __delitem__(self, name: str) -> None:
        for kind in self[name]:
            del self._frames[kind][name]

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys(name for frame in self._frames.values() for name in frame))

    def __len__(self) -> int:
        return len(list(iter(self)))


class TypeView:
    """`graph.nodes` and `graph.edges`: `[type].data` has columns, a call gives ids, of vertices only."""

    def __init__(self, frame_of: Callable[[Any], MutableMapping[str, Any]], ids_of: Callable[[Any], Any]):
        self._frame_of, self._ids_of = frame_of, ids_of

    def __getitem__(self, kind: Any) -> SimpleNamespace:
        return SimpleNamespace(data=self._frame_of(kind))

    def __call__(self, kind: Any = None, **names: Any) -> Any:
        return self._ids_of(next(iter(names.values()), kind))
