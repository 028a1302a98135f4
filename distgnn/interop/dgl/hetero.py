"""DGL's HeteroGraphConv over SAGEConv and GraphConv, summed: one exchange for the rows of each type.

A function returns NotImplemented for what it does not know, and the layer runs as DGL wrote it, relation by relation.
"""

import functools
import importlib
from typing import Any

import torch

from distgnn.interop.sum_of_relations import Term, are_rows, summed
from distgnn.ops.entry import is_seen


def hetero_graph_conv(self: Any, g: Any, inputs: Any, mod_args: Any = None, mod_kwargs: Any = None) -> Any:
    if not hasattr(g, "relations_of") or not isinstance(inputs, dict) or mod_args or torch.is_autocast_enabled("cpu"):
        return NotImplemented
    adds: Any = importlib.import_module("dgl.nn.pytorch.hetero").get_aggregate_fn("sum")
    if getattr(self.agg_fn, "keywords", None) != adds.keywords:
        return NotImplemented
    terms = []
    for key in g.canonical_etypes:
        if key[0] not in inputs:
            continue
        if key[2] not in inputs:
            return NotImplemented
        layer, named = self.mod_dict.get(key, self.mod_dict.get(key[1])), (mod_kwargs or {}).get(key[1], {})
        term = None if layer is None else _term(key, g.relations_of[key].plain, layer, named)
        if term is None or not are_rows([inputs[kind] for kind in term.ends], term.weight.dtype):
            return NotImplemented
        terms.append(term)
    if not terms:
        return NotImplemented
    trail = vars(g.plain).get("trail")
    run = functools.partial(summed, terms)
    found: dict[str, Any] = run(inputs) if trail is None else trail.run("HeteroGraphConv", run, (inputs,), {})
    return {kind: found[kind] for kind in g.dsttypes if kind in found}


def _term(key: tuple[str, str, str], relation: Any, layer: Any, named: dict[str, Any]) -> Term | None:
    """SAGEConv of means, or GraphConv of sums or means, without dropped features and without edge weights."""
    layers = importlib.import_module("dgl.nn.pytorch.conv")
    ends = key[0], key[2]
    if is_seen(layer):
        return None
    if type(layer) is layers.SAGEConv and not named:
        is_mean = hasattr(layer, "fc_self") and not hasattr(layer, "fc_pool") and not hasattr(layer, "lstm")
        drops = layer.training and layer.feat_drop.p > 0
        if not is_mean or drops or layer.norm is not None or layer.activation is not None:
            return None
        own = layer.fc_self
        return Term(ends, relation, layer.fc_neigh.weight.T, True, own.weight.T, own.bias)
    if type(layer) is layers.GraphConv and named.keys() <= {"weight"}:
        words = layer.extra_repr()
        norm = next((one for one in ("right", "none") if f"normalization={one}" in words), None)
        weight = named.get("weight", layer.weight)
        ordinary = type(weight) in (torch.Tensor, torch.nn.Parameter)
        if norm is None or not ordinary or "activation=None" not in words:
            return None
        return Term(ends, relation, weight, norm == "right", None, layer.bias)
    return None
