"""Rows that nobody keeps: who needs them in a backward pass makes them again, piece by piece, from what is kept anyway.

A hidden layer y = dropout(relu(norm(z))) keeps z, which its norm needs. y is the input x of the layer behind, whose
backward pass reads it once, for x' g. So the layer offers y with a way to make it (`offer`), and the layer behind keeps
the way in place of the rows (`taken`). Where nobody else reads y, its memory is free from then on (`lend`): what the
layer behind makes is written over it.

Legend: O rows, D columns.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch

from distgnn.ops.function import version_of

Make = Callable[[Sequence[torch.Tensor], slice], torch.Tensor]  # what is kept, and which rows, to these rows


class MadeAgain:
    """Rows [O, D]: some of them by `rows[first:stop]`, in the memory of these alone, or all as `whole()`.

    Args: kept: tensors that they are made of; `make` holds none. shape, dtype: of all rows.
    """

    def __init__(self, kept: Sequence[torch.Tensor | None], make: Any, shape: tuple[int, int], dtype: torch.dtype):
        self.kept: tuple[torch.Tensor | None, ...] = tuple(kept)
        self.make = make
        self.shape = shape
        self.dtype = dtype

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice) -> torch.Tensor:
        made: torch.Tensor = self.make(self.kept, rows)
        return made

    def whole(self) -> torch.Tensor:
        """All rows."""
        return self[: len(self)]

    def detach(self) -> "MadeAgain":
        return self

    def of(self, kept: Sequence[torch.Tensor | None]) -> "MadeAgain":
        """The same from these tensors."""
        return MadeAgain(kept, self.make, self.shape, self.dtype)


def offer(rows: torch.Tensor, again: MadeAgain) -> torch.Tensor:
    """`rows`, which the next function that `taken` is called in need not keep."""
    rows.made_again = again, version_of(rows)  # type: ignore[attr-defined]
    return rows


def taken(rows: Any) -> MadeAgain | None:
    """How to make these rows again, once, if that was offered and nobody wrote to them since."""
    if type(rows) is not torch.Tensor:
        return None
    again, version = rows.__dict__.pop("made_again", (None, None))
    return again if again is not None and version == version_of(rows) else None


def lend(rows: torch.Tensor) -> None:
    """Say that nobody reads these rows any more: one other result may be written over them."""
    torch.autograd.graph.increment_version(rows)  # whoever saved them is told
    rows.is_lent = version_of(rows)  # type: ignore[attr-defined]


def room_of(rows: Any, like: torch.Tensor) -> torch.Tensor | None:
    """Memory of lent rows, as a tensor, if it has the shape and dtype of `like`."""
    lent = rows.__dict__.get("is_lent") if type(rows) is torch.Tensor else None
    if lent is None or lent != version_of(rows) or rows.shape != like.shape or rows.dtype != like.dtype:
        return None
    del rows.is_lent
    return rows.detach()


def whole(rows: Any) -> Any:
    """Rows as a tensor, whatever they are."""
    return rows.whole() if isinstance(rows, MadeAgain) else rows
