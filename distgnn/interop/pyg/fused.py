"""Layers of PyG whose forward pass runs on kernels of ours: SAGEConv, GCNConv, attention, RGCNConv.

Each function has the arguments of the layer's `forward` and gives what it gives. It returns NotImplemented for what it
does not know (hooks, a subclass that changes messages, edge features, dropped attention, …): then the layer runs as PyG
wrote it, on the tensors of `tensors.py`.

What is won: the aggregation of input features is kept, a layer that narrows multiplies before it aggregates, and
attention stores nothing per arc.
"""

import functools
import math
import sys
from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional
from torch.nn.parameter import is_lazy
from torch.utils._pytree import tree_map_only

from distgnn import ops
from distgnn.interop.in_front import put_in_front
from distgnn.interop.pyg import norm
from distgnn.interop.pyg.arc_set import ArcSet
from distgnn.interop.pyg.functions import FLOATS, check_size
from distgnn.interop.pyg.tensors import BOTH, ArcIndex, local_in
from distgnn.ops.edges.on_arcs import in_blocks
from distgnn.ops.edges.softmax import FEW
from distgnn.rows.row_tensor import local_of, rows_of

OVERRIDES = ("message", "aggregate", "update", "message_and_aggregate", "edge_update", "propagate_type", "edge_updater")
HOOKS = ("propagate", "message", "aggregate", "message_and_aggregate", "edge_update")


def dispatch_in_layers(concerns: Callable[[Any], bool]) -> None:
    convs = sys.modules["torch_geometric.nn.conv"]
    for name, ours in FUSED.items():
        layer = getattr(convs, name)
        put_in_front(layer, "forward", functools.partial(_forward, layer, ours), concerns)


def _forward(
    layer: type[Any], ours: Callable[..., Any], self: Any, x: Any, edge_index: Any, *args: Any, **kwargs: Any
) -> Any:
    """A layer's forward pass by `ours`, of this rank's rows."""
    if not isinstance(edge_index, ArcIndex) or not _fits(self, layer, x, edge_index):
        return NotImplemented
    arcs: Any = edge_index.arcs

    def run(*given: Any, **named: Any) -> Any:
        of_arcs = tree_map_only(torch.Tensor, lambda one: local_in(one, arcs), (given[2:], named))
        found = ours(self, local_in(given[1], arcs, "source"), edge_index, *of_arcs[0], **of_arcs[1])
        return found if found is NotImplemented else rows_of(found, arcs.graph.space_at("target"))

    trail = arcs.trail
    given = (self, x, *args)
    return run(*given, **kwargs) if trail is None else trail.run(layer.__name__, run, given, kwargs)


def _fits(conv: Any, layer: type[Any], x: Any, edge_index: ArcIndex) -> bool:
    """Does the layer pass messages as its class does, with nobody watching, over all arcs of rows [O, D]?"""
    usual = is_as_written(conv, layer) and not any(map(is_lazy, conv.parameters())) and is_whole(edge_index)
    usual = usual and edge_index.arcs.is_square
    return usual and isinstance(x, torch.Tensor) and x.dim() == 2 and x.dtype in FLOATS


def is_as_written(conv: Any, layer: type[Any]) -> bool:
    """Does the layer pass messages as its class does, with nobody watching?"""
    changed = any(getattr(type(conv), name, None) is not getattr(layer, name, None) for name in OVERRIDES)
    hooks = any(getattr(conv, f"_{name}_forward{when}_hooks", None) for name in HOOKS for when in ("_pre", ""))
    usual = conv.flow == "source_to_target" and not conv.explain and conv.decomposed_layers == 1
    return usual and not changed and not hooks


def is_whole(edge_index: ArcIndex) -> bool:
    """All arcs, from their sources to their targets?"""
    return edge_index.arcs.is_whole and edge_index.roles == BOTH


def sage_conv(self: Any, x: torch.Tensor, edge_index: ArcIndex, size: Any = None) -> Any:
    """SAGEConv with mean or sum: one `ops.convolve`."""
    if self.aggr not in ("mean", "sum", "add") or self.project or size is not None:
        return NotImplemented
    graph = edge_index.arcs.graph
    check_size(edge_index.arcs, len(x))
    spec = ops.ConvSpec((None, graph.degree_scale("in", -1) if self.aggr == "mean" else None))
    own = self.lin_r.weight.T if self.root_weight else None
    out = ops.convolve(graph, x, self.lin_l.weight.T, own, self.lin_l.bias, spec)
    return functional.normalize(out, p=2.0, dim=-1) if self.normalize else out


def gcn_conv(self: Any, x: torch.Tensor, edge_index: ArcIndex, edge_weight: Any = None) -> Any:
    """GCNConv without edge weights: one `ops.convolve` with factors per vertex; self-loops are not stored."""
    if edge_weight is not None or not self.normalize or self.aggr not in ("sum", "add"):
        return NotImplemented
    arcs = edge_index.arcs
    graph = arcs.graph
    check_size(arcs, len(x))
    found = norm.norm_of_all(arcs, self.add_self_loops, "target", x.dtype)
    if isinstance(x, ops.SparseRows):
        out = found.sum_sources(self.lin(x))
        return out if self.bias is None else out + self.bias
    spec = ops.ConvSpec((found.scale, found.scale), loops=found.loops)
    return ops.convolve(graph, x, self.lin.weight.T, None, self.bias, spec)


def gat_conv(
    self: Any,
    x: torch.Tensor,
    edge_index: ArcIndex,
    edge_attr: Any = None,
    size: Any = None,
    return_attention_weights: Any = None,
) -> Any:
    """GATConv: attention without numbers per arc, `ops.attend`."""
    dropped = self.dropout > 0 and self.training
    asked = edge_attr is not None or size is not None or return_attention_weights is not None
    unusual = self.lin is None or self.aggr not in ("sum", "add") or not 0 <= self.negative_slope <= 1
    if dropped or asked or unusual:
        return NotImplemented
    arcs = edge_index.arcs
    check_size(arcs, len(x))
    loops = (1 - norm.self_loops_of_all(arcs)).to(x.dtype).numpy() if self.add_self_loops else None
    scores = torch.stack([self.att_src.flatten(), self.att_dst.flatten()])
    heads = ops.Heads(self.heads, self.negative_slope, mean=not self.concat, loops=loops)
    bias = self.bias if self.concat else None
    out = ops.attend(arcs.graph, x, self.lin.weight.T, scores, bias, heads)
    out = out if self.res is None else out + self.res(x)
    return out if self.concat or self.bias is None else out + self.bias


def gatv2_conv(
    self: Any, x: torch.Tensor, edge_index: ArcIndex, edge_attr: Any = None, return_attention_weights: Any = None
) -> Any:
    """GATv2Conv: a number per arc and head instead of rows (`ops.pair_scores`)."""
    slope = self.negative_slope
    asked = edge_attr is not None or return_attention_weights is not None or not 0 <= slope <= 1
    if asked or self.aggr not in ("sum", "add"):
        return NotImplemented
    arcs = edge_index.arcs
    check_size(arcs, len(x))
    shape, graph = (len(x), self.heads, self.out_channels), arcs.graph
    sources, targets = self.lin_l(x).view(shape), self.lin_r(x).view(shape)
    others = norm.without_self_loops_of_all(arcs) if self.add_self_loops else arcs
    every = others.with_loops() if self.add_self_loops else arcs

    def scores(heads: slice) -> torch.Tensor:
        some, there, att = sources[:, heads], targets[:, heads], self.att[:, heads]
        found = ops.pair_scores(graph, some, there, att, slope)
        if not self.add_self_loops:
            return found
        found = found if others.positions is None else found[others.positions]
        return torch.cat([found, (functional.leaky_relu(some + there, slope) * att).sum(-1)])

    out = _weighted(self, every, sources, scores)
    out = out if self.res is None else out + self.res(x)
    return out if self.bias is None else out + self.bias


def _weighted(self: Any, arcs: ArcSet, values: torch.Tensor, scores: Callable[[slice], torch.Tensor]) -> torch.Tensor:
    """Values [O, H, F] of sources summed by the softmax of scores of some heads [M, h], side by side or averaged."""

    def dropped(attention: torch.Tensor) -> torch.Tensor:
        return local_of(functional.dropout(rows_of(attention, arcs.space), self.dropout, self.training))

    out = attended(arcs, values, scores, dropped)
    return out.flatten(1) if self.concat else out.mean(1)


def attended(
    arcs: ArcSet,
    values: torch.Tensor,
    scores: Callable[[slice], torch.Tensor],
    change: Callable[[torch.Tensor], torch.Tensor] = lambda weights: weights,
) -> torch.Tensor:
    """Source rows [O, H, F] summed by the softmax of scores of some heads [M, h], which are changed before.

    Notes: where rows of arcs are made in blocks a few heads at a time, so that memory does not grow with heads.
    """
    every = values.shape[1]
    step = FEW if in_blocks(arcs.graph) else every
    some = [slice(first, first + step) for first in range(0, every, step)]
    made = [arcs.sum_heads(values[:, heads], change(arcs.softmax(scores(heads)))) for heads in some]
    return made[0] if len(made) == 1 else torch.cat(made, 1)


def transformer_conv(
    self: Any, x: torch.Tensor, edge_index: ArcIndex, edge_attr: Any = None, return_attention_weights: Any = None
) -> Any:
    """TransformerConv without edge features: a number per arc and head (`ops.pair_dots`)."""
    if edge_attr is not None or return_attention_weights is not None or self.aggr not in ("sum", "add"):
        return NotImplemented
    arcs = edge_index.arcs
    check_size(arcs, len(x))
    shape = len(x), self.heads, self.out_channels
    query, key, value = (layer(x).view(shape) for layer in (self.lin_query, self.lin_key, self.lin_value))

    def scores(heads: slice) -> torch.Tensor:
        return ops.pair_dots(arcs.graph, key[:, heads], query[:, heads]) / math.sqrt(self.out_channels)

    out = _weighted(self, arcs, value, scores)
    if not self.root_weight:
        return out
    own = self.lin_skip(x)
    if self.lin_beta is None:
        return out + own
    beta = self.lin_beta(torch.cat([out, own, out - own], dim=-1)).sigmoid()
    return beta * own + (1 - beta) * out


def rgcn_conv(self: Any, x: torch.Tensor, edge_index: ArcIndex, edge_type: Any = None) -> Any:
    """RGCNConv with mean or sum, without blocks: sources are summed per relation and target, then transformed."""
    if self.num_blocks is not None or edge_type is None or self.aggr not in ("mean", "sum", "add"):
        return NotImplemented
    arcs = edge_index.arcs
    check_size(arcs, len(x))
    groups = norm.relations_of_all(arcs, edge_type, self.num_relations, self.aggr == "mean")
    weight = self.weight
    if self.num_bases is not None:
        weight = (self.comp @ weight.view(self.num_bases, -1)).view(-1, self.in_channels_l, self.out_channels)
    return groups.convolve(x, weight.unbind(0), self.root, self.bias)


FUSED: dict[str, Callable[..., Any]] = {
    "SAGEConv": sage_conv,
    "GCNConv": gcn_conv,
    "GATConv": gat_conv,
    "GATv2Conv": gatv2_conv,
    "RGCNConv": rgcn_conv,
    "TransformerConv": transformer_conv,
}
