"""Convolutions along several relations: those that leave from the same rows share one exchange.

    papers ──cites────▶ papers          one broadcast of the paper rows that any of the three needs,
    papers ──topic────▶ fields          one sum over all their arcs, one reduce of all their halo targets;
    papers ──written──▶ authors         backward one gradient of the paper rows, by the transposed exchange

Legend: O_s owned source rows, O_t owned target rows of a relation, I columns in, D columns out.
"""

from collections.abc import Sequence
from typing import Any

import torch

from distgnn.ops.aggregation.convolve import ConvSpec, convolve
from distgnn.ops.aggregation.spmm import spmm


def along_relations(
    relations: Sequence[Any], rows: Sequence[torch.Tensor], weights: Sequence[torch.Tensor], mean: Sequence[bool]
) -> list[torch.Tensor]:
    """The sum or mean of source rows over the in-arcs of each target, times a weight: [O_t, D] of each relation.

    Collective: yes, and again in the backward pass.

    Args: relations: `Relation`s; rows: the source rows [O_s, I] of each; those that are the same tensor travel once;
        weights: [I, D] of each.

    Notes: on one rank, which exchanges nothing, each is a `convolve`, which stores no sums of hidden rows.
    """
    if not relations or relations[0].num_ranks == 1:
        cases = zip(relations, rows, weights, mean, strict=True)
        return [
            convolve(graph, one, weight, None, None, ConvSpec((None, _scale(graph, is_mean))))
            for graph, one, weight, is_mean in cases
        ]
    narrow = [graph.narrows(*weight.shape) for graph, weight in zip(relations, weights, strict=True)]
    given = [one @ weight if is_first else one for one, weight, is_first in zip(rows, weights, narrow, strict=True)]
    sums = _sums(relations, given, mean)
    return [one if is_first else one @ weight for one, weight, is_first in zip(sums, weights, narrow, strict=True)]


def _sums(relations: Sequence[Any], rows: Sequence[torch.Tensor], mean: Sequence[bool]) -> list[torch.Tensor]:
    together: dict[tuple[int, bool], list[int]] = {}
    for number, (one, is_mean) in enumerate(zip(rows, mean, strict=True)):
        together.setdefault((id(one), is_mean), []).append(number)
    found: dict[int, torch.Tensor] = {}
    for (_, is_mean), numbers in together.items():
        chosen = [relations[number] for number in numbers]
        graph = chosen[0] if len(chosen) == 1 else chosen[0].from_same_rows(chosen)
        made = spmm(graph, rows[numbers[0]], target_scale=_scale(graph, is_mean))
        found |= zip(numbers, made.split([one.num_owned for one in chosen]), strict=True)
    return [found[number] for number in range(len(rows))]


def _scale(graph: Any, is_mean: bool) -> Any:
    return graph.degree_scale("in", -1) if is_mean else None
