"""A sum of linear layers along relations, of whichever library they are: rows of a type travel once for all of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from distgnn.rows.align import in_space
from distgnn.rows.row_tensor import RowTensor, rows_of

FLOATS = (torch.float32, torch.float64)


@dataclass(frozen=True)
class Term:
    """A layer along one relation: the mean or sum of sources times `weight` [I, D], the target's own row times `own`.

    Args: ends: types of sources and targets; relation: a `Relation`; own, bias: None without.
    """

    ends: tuple[str, str]
    relation: Any
    weight: torch.Tensor
    is_mean: bool
    own: torch.Tensor | None = None
    bias: torch.Tensor | None = None


def are_rows(values: Sequence[Any], dtype: torch.dtype) -> bool:
    """Are these vectors of vertices, of all ranks, in the numbers that a layer has?"""
    usual = all(isinstance(one, RowTensor) and one.dim() == 2 and one.dtype == dtype for one in values)
    return usual and dtype in FLOATS


def summed(terms: Sequence[Term], rows: dict[str, Any]) -> dict[str, RowTensor]:
    """The sum of terms by the type of their targets. Collective: yes, and backward."""
    spaces: dict[str, Any] = {}
    for term in terms:
        for kind, role in zip(term.ends, ("source", "target"), strict=True):
            spaces[kind] = term.relation.space_at(role)
    into = {kind: [term for term in terms if term.ends[1] == kind] for kind in spaces}
    own = [_sum([term.own for term in some]) for some in into.values()]
    biases = [_sum([term.bias for term in some]) for some in into.values()]
    relations, means = [term.relation for term in terms], [term.is_mean for term in terms]
    arcs = relations[0].arcs_of(relations, means, list(spaces.values()))
    given = [in_space(rows[kind], space).inner for kind, space in spaces.items()]
    made = arcs.by_type(given, [term.weight for term in terms], own, biases)
    return {kind: rows_of(made[number], spaces[kind]) for number, kind in enumerate(spaces) if into[kind]}


def _sum(values: list[Any]) -> Any:
    """The sum of what is there; None of nothing."""
    found = [one for one in values if one is not None]
    return sum(found[1:], found[0]) if found else None
