"""Rows that are made piece by piece, where they are needed, from tensors that are there anyway.

Products take them in place of a tensor (products.py). What lives how long is decided in chain.py.

Legend: O rows, D columns.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch


class Through(NamedTuple):
    """In place of the gradient of y: that of z, and the sums of bias, gamma and beta."""

    grads: torch.Tensor
    sums: Any


@dataclass(eq=False)
class PieceRows:
    """Rows [O, D]: some of them by `rows[first:stop]`, in the memory of these alone, or all as `whole()`.

    Args: make: some rows. shape, dtype: of all. z: what they are made of, where `through` takes gradients of some rows,
        after sums over those before, to gradients of z. is_unread: nobody has the rows whole, so z is written over.
    """

    make: Callable[[slice], torch.Tensor]
    shape: torch.Size
    dtype: torch.dtype
    z: torch.Tensor | None = None
    through: Callable[[slice, torch.Tensor, Any], Any] | None = None
    is_unread: bool = False

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice) -> torch.Tensor:
        return self.make(rows)

    def whole(self) -> torch.Tensor:
        return self[: len(self)]

    def gradient(self, make: Callable[[slice], torch.Tensor], pieces: Sequence[slice]) -> Through:
        """The gradient of z, written over it. Args: make: the gradient of some of the rows."""
        z, through = self.z, self.through
        if z is None or through is None:
            raise ValueError("these rows have no gradient in pieces")
        sums: Any = no_sums(z.shape[1])
        for rows in pieces:
            grads = make(rows)
            sums = through(rows, grads, sums)
            z[rows].copy_(grads)
        return Through(z, sums)


def no_sums(width: int) -> list[torch.Tensor]:
    """Gradients of bias, gamma and beta [width] of no rows, to go on from."""
    return [torch.zeros(width) for _ in range(3)]


def unread(rows: torch.Tensor, dtype: torch.dtype | None = None, width: int | None = None) -> torch.Tensor:
    """What stands for as many rows that nobody reads, without memory: NaN, which whoever does would spread.

    Args: width: of them; None: as wide as these.
    """
    shape = len(rows), rows.shape[1] if width is None else width
    return rows.new_full((), float("nan"), dtype=dtype or rows.dtype).expand(shape)


def whole(rows: Any) -> Any:
    return rows.whole() if isinstance(rows, PieceRows) else rows
