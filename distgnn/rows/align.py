"""Arguments side by side: rows of one space, and ordinary tensors that every rank has as a whole.

Dimensions are counted from the right, as torch broadcasts: `back` is 1 for the last one.
"""

from collections.abc import Iterable
from typing import Any

import torch

from distgnn.errors import InputError
from distgnn.rows.row_tensor import RowTensor, local_of, rows_of
from distgnn.rows.space import Space


class Aligned:
    """What the arguments of a function have in common: a space, and where its dimension stands from the right."""

    def __init__(self, name: str, arguments: Iterable[Any]):
        self.name = name
        first: Any = None
        for one in arguments:
            if isinstance(one, RowTensor):
                back = one.dim() - one.row_dim
                if first is None:
                    first = one
                    self.space: Space = one.row_space
                    self.back: int = back
                elif back != self.back:
                    raise InputError(
                        f"torch's {name} of rows with rows, {list(first.shape)} and {list(one.shape)}, would make a "
                        "row for each pair: take the pairs that are needed, rows[ids], or use dg.ops along arcs"
                    )

    def local(self, value: Any) -> Any:
        """This rank's part of an argument."""
        if isinstance(value, RowTensor):
            return in_space(value, self.space).inner
        if isinstance(value, torch.Tensor):
            value = local_of(value)
            if value.dim() >= self.back and value.shape[-self.back] != 1:
                return part_of(value, self.space, value.dim() - self.back, self.name)
        return value

    def rows(self, result: Any) -> Any:
        """A result, or each of several, as rows."""
        if isinstance(result, torch.Tensor):
            return rows_of(result, self.space, result.dim() - self.back)
        return type(result)(tuple(map(self.rows, result)))


def part_of(whole: torch.Tensor, space: Space, dim: int, name: str) -> torch.Tensor:
    """This rank's rows of an ordinary tensor that all ranks have as a whole."""
    if whole.shape[dim] != space.num_global:
        raise InputError(
            f"torch's {name} of {space.num_global} {space.kind} of all ranks and an ordinary tensor of "
            f"{whole.shape[dim]}: give one row for each, in the order of the source, or make it from rows "
            "(x.new_zeros, torch.zeros_like)"
        )
    return space.local_part(whole, dim)


def in_space(rows: RowTensor, space: Space) -> RowTensor:
    """The same rows on the ranks that `space` has them on. Collective where they must travel."""
    if rows.row_space.same(space):
        return rows
    types = rows.row_space.of_type, space.of_type
    if None not in types and types[0] != types[1]:
        raise InputError(
            f"rows of two types do not go together, {rows.row_space.kind} and {space.kind}: aggregate along a "
            "relation, or choose rows of each by id, rows[ids]"
        )
    if rows.row_space.num_global != space.num_global:
        raise InputError(
            f"{rows.row_space.num_global} {rows.row_space.kind} and {space.num_global} {space.kind} do not go "
            "together: choose both with the same mask or the same number of ids"
        )
    front = rows.inner.movedim(rows.row_dim, 0)
    found = rows.row_space.rows_at(front, space.places)
    return rows_of(found.movedim(0, rows.row_dim), space, rows.row_dim)


def local_in(value: Any, space: Space, dim: int, name: str) -> torch.Tensor:
    """This rank's part of rows, or of an ordinary tensor that counts all rows in dimension `dim`."""
    if isinstance(value, RowTensor):
        return in_space(value, space).inner
    return part_of(local_of(value), space, dim, name)
