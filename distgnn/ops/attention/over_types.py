"""Attention of several types (HGT): one softmax over the arcs of all relations into a vertex, in one exchange.

Legend: O_t owned rows of type t, O_r sources of relation r, H heads, F features per head.

Queries, keys and values are made again for the backward pass from the rows of types: what is stored are keys and values
as relations send them, [sum of O_r, H F] each, queries, and a number per arc and head.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch.nn import functional
from torch.utils._pytree import tree_leaves
from torch.utils.checkpoint import checkpoint

from distgnn.errors import RunError, on_all_ranks
from distgnn.ops.attention.heads import pair_dots, spmm_heads
from distgnn.ops.edges.softmax import edge_softmax
from distgnn.ops.function import is_same, version_of

Key = tuple[str, str, str]
WRITTEN = "HGTConv's rows or parameters were written to in place before its backward pass: write out of place"


def attend_over_types(
    layer: Any, graphs: Mapping[Key, Any], rows: Mapping[str, torch.Tensor]
) -> dict[str, torch.Tensor]:
    """Rows by HGTConv of the types that relations lead to, [O_t, H F] of each. Collective: yes, and backward.

    Args: layer: with the parameters of `torch_geometric.nn.HGTConv` under its names; graphs: `Relation`s.
    """
    graphs = {key: one for key, one in graphs.items() if one.source.num_global and one.target.num_global}
    if not graphs:
        return {}
    counts = {key[2]: graph.target.num_global for key, graph in graphs.items()}
    begins = np.cumsum([0, *(graph.source.num_global for graph in graphs.values())]).tolist()
    starts = dict(zip(counts, np.cumsum([0, *counts.values()]).tolist(), strict=False))
    shifts = [(begin, starts[key[2]]) for key, begin in zip(graphs, begins, strict=False)]
    graph = next(iter(graphs.values())).joined(list(graphs.values()), shifts, of_all=False)
    used = {kind: one for kind, one in rows.items() if kind in layer.kqv_lin.lins}
    key, value, query = _again(_products, layer, list(graphs), list(counts), used)
    out = spmm_heads(graph, value, edge_softmax(graph, pair_dots(graph, key, query))).flatten(1)
    del key, value, query
    pieces = out.split([len(rows[kind]) for kind in counts])
    return {kind: gated(layer, kind, piece, rows[kind]) for kind, piece in zip(counts, pieces, strict=True)}


def gated(layer: Any, kind: str, rows: torch.Tensor, own: torch.Tensor) -> torch.Tensor:
    """What follows the attention: a linear layer, and a gate for own rows."""
    out: torch.Tensor = _again(_gated, layer, kind, rows, own)
    return out


def _again(run: Any, layer: Any, *given: Any) -> Any:
    """`run(layer, *given)`, which the backward pass runs once more: it sends nothing.

    Raises: RunError, there, where rows or parameters were written to in between.
    """
    known = [(one, version_of(one)) for one in (*layer.parameters(), *tree_leaves(given)) if torch.is_tensor(one)]

    def checked(*values: Any) -> Any:
        if not all(is_same(one, version) for one, version in known):
            raise on_all_ranks(RunError(WRITTEN))
        return run(layer, *values)

    return checkpoint(checked, *given, use_reentrant=False, preserve_rng_state=False, determinism_check="none")


def _products(
    layer: Any, relations: list[Key], kinds: list[str], rows: Mapping[str, torch.Tensor]
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Keys and values of each relation's sources and queries of targets, [.., H, F]."""
    heads, numbers = layer.heads, {relation: number for number, relation in enumerate(layer.edge_types)}
    width = layer.out_channels // heads
    parts = {kind: layer.kqv_lin.lins[kind](one).view(-1, 3, heads * width) for kind, one in rows.items()}
    keys, values = [], []
    for relation in relations:
        places = [head * len(numbers) + numbers[relation] for head in range(heads)]
        factors = layer.p_rel["__".join(relation)].view(heads, 1, 1) / math.sqrt(width)
        key, _, value = parts[relation[0]].unbind(1)
        keys.append(key @ torch.block_diag(*layer.k_rel.weight[places] * factors))
        values.append(value @ torch.block_diag(*layer.v_rel.weight[places]))
    # Types without relations come last: their matrices have gradients of 0, as in PyG
    queries = [parts[kind][:, 1] for kind in (*kinds, *(one for one in parts if one not in kinds))]
    key, value, query = (torch.cat(ones).view(-1, heads, width) for ones in (keys, values, queries))
    return key, value, query[: sum(len(parts[kind]) for kind in kinds)]


def _gated(layer: Any, kind: str, rows: torch.Tensor, own: torch.Tensor) -> torch.Tensor:
    out = layer.out_lin.lins[kind](functional.gelu(rows))
    if out.shape[-1] != own.shape[-1]:
        return out
    alpha = layer.skip[kind].sigmoid()
    return alpha * out + (1 - alpha) * own
