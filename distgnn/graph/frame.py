"""Frame: named columns over the rows of a graph, as `ndata` and `edata` show them."""

from collections import UserDict
from dataclasses import dataclass
from typing import NoReturn

import torch


class Frame(UserDict[str, torch.Tensor]):
    """A mapping from names to tensors that all have `num_rows` rows; `kind` names the rows in errors."""

    def __init__(self, num_rows: int, kind: str):
        super().__init__()
        self.num_rows = num_rows
        self.kind = kind

    def __missing__(self, name: str) -> NoReturn:
        raise KeyError(f"no {self.kind} data named {name!r}; there are {sorted(self)}")

    def __setitem__(self, name: str, column: torch.Tensor) -> None:
        if len(column) != self.num_rows:
            raise ValueError(f"{self.kind} data {name!r} has {len(column)} rows: this part has {self.num_rows}")
        super().__setitem__(name, column)


@dataclass
class Frames:
    """The columns of a graph, over its vertices and over its arcs."""

    vertices: Frame
    arcs: Frame

    def copy(self) -> "Frames":
        return Frames(self.vertices.copy(), self.arcs.copy())
