"""Rows that nobody keeps: who needs them in a backward pass makes them again, piece by piece, from what is kept anyway.

A hidden layer y = dropout(relu(norm(z))) keeps z, which its norm needs. y is the input x of the layer behind, whose
backward pass reads it once, for x' g. So the layer offers y with a way to make it (`offer`), and the layer behind keeps
the way in place of the rows (`taken`). Where nobody else reads y, its memory is free from then on (`lend`): what the
layer behind makes is written over it. With remat the last hidden y is never whole (`unread`): the last layer makes it
piece by piece in both passes, and its backward pass writes dz over z (`MadeAgain.gradient`).

Legend: O rows, D columns.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import torch

from distgnn.ops.function import Facts

Make = Callable[[Sequence[Any], slice], torch.Tensor]  # what is kept, and which rows, to these rows
Through = Callable[[Sequence[Any], slice, torch.Tensor, Any], Any]  # the same, gradients and sums before, to sums

_made_again, _lent, _gone_through = Facts(), Facts(), Facts()


@dataclass(eq=False)
class MadeAgain:
    """Rows [O, D]: some of them by `rows[first:stop]`, in the memory of these alone, or all as `whole()`.

    Args: kept: tensors that they are made of; `make` holds none. shape, dtype: of all rows. through: takes gradients of
        some rows, after sums over those before, through what makes them, and writes over kept[0] there. is_unread:
        nobody has the rows, and their gradient goes `through`, once.
    """

    kept: Sequence[torch.Tensor | None]
    make: Make
    shape: tuple[int, int]
    dtype: torch.dtype
    through: Through | None = None
    is_unread: bool = False

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice) -> torch.Tensor:
        return self.make(self.kept, rows)

    def whole(self) -> torch.Tensor:
        return self[: len(self)]

    def detach(self) -> "MadeAgain":
        return self

    def of(self, kept: Sequence[torch.Tensor | None]) -> "MadeAgain":
        """The same from these tensors."""
        return replace(self, kept=kept)

    def gradient(self, make: Callable[[slice], torch.Tensor], pieces: Sequence[slice]) -> torch.Tensor:
        """The gradient of kept[0], written over it, in place of the rows' own. Args: make: that of some rows."""
        gone: torch.Tensor = cast(torch.Tensor, self.kept[0]).detach()
        sums: Any = no_sums(gone.shape[1])
        for rows in pieces:
            sums = cast(Through, self.through)(self.kept, rows, make(rows), sums)
        _gone_through.note(gone, sums)
        return gone


def no_sums(width: int) -> list[torch.Tensor]:
    """Gradients of bias, gamma and beta [width] of no rows, to go on from."""
    return [torch.zeros(width) for _ in range(3)]


def offer(rows: torch.Tensor, again: MadeAgain) -> torch.Tensor:
    """`rows`, which the next function that `taken` is called in need not keep."""
    _made_again.note(rows, again)
    return rows


def taken(rows: Any) -> MadeAgain | None:
    """How to make these rows again, once, if that was offered and nobody wrote to them since."""
    again: MadeAgain | None = _made_again.of(rows, once=True)
    return again


def lend(rows: torch.Tensor) -> None:
    """Say that nobody reads these rows any more: one other result may be written over them."""
    torch.autograd.graph.increment_version(rows)  # whoever saved them is told
    _lent.note(rows, True)


def room_of(rows: Any, like: torch.Tensor) -> torch.Tensor | None:
    """Memory of lent rows, as a tensor, if it has the shape and dtype of `like`."""
    if not _lent.of(rows) or rows.shape != like.shape or rows.dtype != like.dtype:
        return None
    _lent.of(rows, once=True)
    return rows.detach()


def unread(rows: torch.Tensor, dtype: torch.dtype | None = None, width: int | None = None) -> torch.Tensor:
    """What stands for as many rows that nobody reads, without memory: NaN, which whoever does would spread.

    Args: width: of them; None: as wide as these.
    """
    shape = len(rows), rows.shape[1] if width is None else width
    return rows.new_full((), float("nan"), dtype=dtype or rows.dtype).expand(shape)


def gone_through(grad: torch.Tensor) -> Any:
    """The sums of `MadeAgain.gradient`, if that made this gradient."""
    return _gone_through.of(grad, once=True)


def whole(rows: Any) -> Any:
    return rows.whole() if isinstance(rows, MadeAgain) else rows
