"""Sums of source rows along several relations: those that leave from the same rows share one exchange.

    papers ──cites────▶ papers          one broadcast of the paper rows that any of the three needs,
    papers ──topic────▶ fields          one sum over all their arcs, one reduce of all their halo targets;
    papers ──written──▶ authors         backward one gradient of the paper rows, by the transposed exchange

Legend: O_s owned source rows, O_t owned target rows of a relation, D width.
"""

from collections.abc import Sequence
from typing import Any

import torch

from distgnn.ops.aggregation.spmm import spmm


def relation_sums(relations: Sequence[Any], rows: Sequence[torch.Tensor], mean: Sequence[bool]) -> list[torch.Tensor]:
    """The sum or mean of source rows over the in-arcs of each target: [O_t, D] of each relation.

    Collective: yes, and again in the backward pass.

    Args: relations: `Relation`s; rows: the source rows [O_s, D] of each; those that are the same tensor travel once.
    """
    together: dict[Any, list[int]] = {}
    for number, (graph, one, is_mean) in enumerate(zip(relations, rows, mean, strict=True)):
        key = (id(one), is_mean) if graph.num_ranks > 1 else number  # one rank exchanges nothing
        together.setdefault(key, []).append(number)
    found: dict[int, torch.Tensor] = {}
    for numbers in together.values():
        chosen = [relations[number] for number in numbers]
        graph = chosen[0] if len(chosen) == 1 else chosen[0].from_same_rows(chosen)
        scale = graph.degree_scale("in", -1) if mean[numbers[0]] else None
        made = spmm(graph, rows[numbers[0]], target_scale=scale)
        found |= zip(numbers, made.split([one.num_owned for one in chosen]), strict=True)
    return [found[number] for number in range(len(rows))]
