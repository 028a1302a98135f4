"""Layers of PyG whose forward pass runs on kernels of ours: SAGEConv, GCNConv, attention, RGCNConv, and over types.

Each function gives what the layer's `forward` gives. It returns NotImplemented for what it does not know (hooks, a
subclass that changes messages, edge features, dropped attention, …): then the layer runs as PyG wrote it, on the
tensors of `tensors.py`.

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

from distgnn import ops
from distgnn.interop.in_front import put_in_front
from distgnn.interop.pyg import norm
from distgnn.interop.pyg.arc_set import ArcSet
from distgnn.interop.pyg.functions import FLOATS, check_size
from distgnn.interop.pyg.tensors import ArcIndex, local_in
from distgnn.interop.sum_of_relations import Term, are_rows, summed
from distgnn.ops.attention.over_types import attend_over_types, gated
from distgnn.ops.edges.on_arcs import in_blocks
from distgnn.ops.edges.softmax import FEW
from distgnn.ops.function import is_alone, is_seen, multiplies, runs_as
from distgnn.rows.align import local_in as rows_in
from distgnn.rows.row_tensor import RowTensor, local_of, rows_of

OVERRIDES = ("message", "aggregate", "update", "message_and_aggregate", "edge_update", "propagate_type")
WRITTEN_BY_PYG = ("propagate", "edge_updater")  # for each class of layers, into a module of its own
HOOKS = ("propagate", "message", "aggregate", "message_and_aggregate", "edge_update")


def dispatch_in_layers(concerns: Callable[[Any], bool]) -> None:
    layers = sys.modules["torch_geometric.nn"]
    for layer in (getattr(layers, name) for name in FUSED):
        put_in_front(layer, "forward", functools.partial(_forward, layer), concerns)
    for name, ours in OVER_TYPES.items():
        put_in_front(getattr(layers, name), "forward", ours, concerns)


def _forward(layer: type[Any], self: Any, x: Any, edge_index: Any, *args: Any, **kwargs: Any) -> Any:
    """A layer's forward pass by ours, of this rank's rows. Of further arguments only types of arcs are known."""
    ours, aggregators = FUSED[layer.__name__]
    more = [one for one in (*args, *kwargs.values()) if one is not None]
    if not isinstance(edge_index, ArcIndex) or self.aggr not in aggregators or (more and ours is not rgcn_conv):
        return NotImplemented
    arcs: Any = edge_index.arcs
    usual = is_as_written(self, layer) and not any(map(is_lazy, self.parameters()))
    usual = usual and edge_index.is_whole and arcs.is_square
    if not usual or not isinstance(x, torch.Tensor) or x.dim() != 2 or x.dtype not in FLOATS:
        return NotImplemented

    def run(_: Any, given: torch.Tensor, *of_arcs: Any) -> Any:
        rows = local_in(given, arcs, "source")
        check_size(arcs, len(rows))
        found = ours(self, rows, arcs, *(local_in(one, arcs) for one in of_arcs))
        return found if found is NotImplemented else rows_of(found, arcs.graph.space_at("target"))

    trail = arcs.trail
    return run(self, x, *more) if trail is None else trail.run(layer.__name__, run, (self, x, *more), {})


def _function(conv: Any, name: str) -> Any:
    """A method of a layer, also one that was put on this layer alone."""
    found = getattr(conv, name, None)
    return getattr(found, "__func__", found)


def _is_written_by_pyg(conv: Any, name: str) -> bool:
    """Is it the base's method, or what PyG wrote for the layer's class or one above?"""
    found = _function(conv, name)
    places = {f"{one.__module__}_{one.__name__}_{name}" for one in type(conv).__mro__}
    base = sys.modules["torch_geometric.nn"].MessagePassing
    return found is getattr(base, name) or getattr(found, "__module__", None) in places


def is_as_written(conv: Any, layer: type[Any]) -> bool:
    """Does the layer pass messages as its class does, with nobody watching?"""
    changed = any(_function(conv, name) is not getattr(layer, name, None) for name in OVERRIDES)
    changed = changed or not all(_is_written_by_pyg(conv, name) for name in WRITTEN_BY_PYG)
    hooks = any(getattr(conv, f"_{name}_forward{when}_hooks", None) for name in HOOKS for when in ("_pre", ""))
    usual = conv.flow == "source_to_target" and not conv.explain and conv.decomposed_layers == 1
    sums = sys.modules["torch_geometric.nn"].aggr
    usual = usual and type(conv.aggr_module) is (sums.MeanAggregation if conv.aggr == "mean" else sums.SumAggregation)
    usual = usual and is_alone(conv.aggr_module)
    return usual and not changed and not hooks


def _multiplies(linear: Any) -> bool:
    """May we read the weight and bias of a layer's linear layer, PyG's or torch's, and not call it?"""
    return multiplies(linear, sys.modules["torch_geometric.nn"].Linear)


def _linears_of_sage(conv: Any) -> list[Any]:
    return [conv.lin_l, *([conv.lin_r] if conv.root_weight else [])]


def sage_conv(self: Any, x: torch.Tensor, arcs: ArcSet) -> Any:
    """SAGEConv with mean or sum: one `ops.convolve`."""
    if self.project or not all(map(_multiplies, _linears_of_sage(self))):
        return NotImplemented
    graph = arcs.graph
    spec = ops.ConvSpec((None, graph.degree_scale("in", -1) if self.aggr == "mean" else None))
    own = self.lin_r.weight.T if self.root_weight else None
    out = ops.convolve(graph, x, self.lin_l.weight.T, own, self.lin_l.bias, spec)
    return functional.normalize(out, p=2.0, dim=-1) if self.normalize else out


def gcn_conv(self: Any, x: torch.Tensor, arcs: ArcSet) -> Any:
    """GCNConv without edge weights: one `ops.convolve` with factors per vertex; self-loops are not stored."""
    if not self.normalize or not _multiplies(self.lin):
        return NotImplemented
    found = norm.norm_of_all(arcs, self.add_self_loops, "target", x.dtype)
    if isinstance(x, ops.SparseRows):
        out = found.sum_sources(self.lin(x))
        return out if self.bias is None else out + self.bias
    spec = ops.ConvSpec((found.scale, found.scale), loops=found.loops)
    return ops.convolve(arcs.graph, x, self.lin.weight.T, None, self.bias, spec)


def gat_conv(self: Any, x: torch.Tensor, arcs: ArcSet) -> Any:
    """GATConv: attention without numbers per arc, `ops.attend`."""
    dropped = self.dropout > 0 and self.training
    if dropped or self.lin is None or not _multiplies(self.lin) or not 0 <= self.negative_slope <= 1:
        return NotImplemented
    loops = (1 - norm.self_loops_of_all(arcs)).to(x.dtype).numpy() if self.add_self_loops else None
    scores = torch.stack([self.att_src.flatten(), self.att_dst.flatten()])
    heads = ops.Heads(self.heads, self.negative_slope, mean=not self.concat, loops=loops)
    bias = self.bias if self.concat else None
    out = ops.attend(arcs.graph, x, self.lin.weight.T, scores, bias, heads)
    out = out if self.res is None else out + self.res(x)
    return out if self.concat or self.bias is None else out + self.bias


def gatv2_conv(self: Any, x: torch.Tensor, arcs: ArcSet) -> Any:
    """GATv2Conv: a number per arc and head instead of rows (`ops.pair_scores`)."""
    slope = self.negative_slope
    if not 0 <= slope <= 1:
        return NotImplemented
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

    out = _attended(self, every, sources, scores)
    out = out if self.res is None else out + self.res(x)
    return out if self.bias is None else out + self.bias


def _attended(self: Any, arcs: ArcSet, values: torch.Tensor, scores: Callable[[slice], torch.Tensor]) -> torch.Tensor:
    """Values [O, H, F] of sources summed by the softmax of scores of some heads [M, h], side by side or averaged.

    Notes: where rows of arcs are made in blocks a few heads at a time, so that memory does not grow with heads.
    """
    every, made = values.shape[1], []
    step = FEW if in_blocks(arcs.graph) else every
    for first in range(0, every, step):
        heads = slice(first, first + step)
        weights: Any = rows_of(arcs.softmax(scores(heads)), arcs.space)
        weights = functional.dropout(weights, self.dropout, self.training)
        made.append(arcs.sum_heads(values[:, heads], local_of(weights)))
    out = made[0] if len(made) == 1 else torch.cat(made, 1)
    return out.flatten(1) if self.concat else out.mean(1)


def transformer_conv(self: Any, x: torch.Tensor, arcs: ArcSet) -> Any:
    """TransformerConv without edge features: a number per arc and head (`ops.pair_dots`)."""
    shape = len(x), self.heads, self.out_channels
    query, key, value = (layer(x).view(shape) for layer in (self.lin_query, self.lin_key, self.lin_value))

    def scores(heads: slice) -> torch.Tensor:
        return ops.pair_dots(arcs.graph, key[:, heads], query[:, heads]) / math.sqrt(self.out_channels)

    out = _attended(self, arcs, value, scores)
    if not self.root_weight:
        return out
    own = self.lin_skip(x)
    if self.lin_beta is None:
        return out + own
    beta = self.lin_beta(torch.cat([out, own, out - own], dim=-1)).sigmoid()
    return beta * own + (1 - beta) * out


def rgcn_conv(self: Any, x: torch.Tensor, arcs: ArcSet, edge_type: Any = None) -> Any:
    """RGCNConv with mean or sum, without blocks: sources are summed per relation and target, then transformed."""
    if self.num_blocks is not None or edge_type is None:
        return NotImplemented
    groups = norm.relations_of_all(arcs, edge_type, self.num_relations, self.aggr == "mean")
    weight = self.weight
    if self.num_bases is not None:
        weight = (self.comp @ weight.view(self.num_bases, -1)).view(-1, self.in_channels_l, self.out_channels)
    return groups.convolve(x, weight.unbind(0), self.root, self.bias)


SUMS = ("sum", "add")
MEANS = ("mean", *SUMS)
FUSED: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {  # layer -> (ours, the aggregators that it knows)
    "SAGEConv": (sage_conv, MEANS),
    "GCNConv": (gcn_conv, SUMS),
    "GATConv": (gat_conv, SUMS),
    "GATv2Conv": (gatv2_conv, SUMS),
    "RGCNConv": (rgcn_conv, MEANS),
    "TransformerConv": (transformer_conv, SUMS),
}


def _hetero_conv(self: Any, *dicts: Any, **more: Any) -> Any:
    """A sum of SAGEConv: relations from one type share one exchange, and rows of a target are multiplied once."""
    if more or len(dicts) != 2 or self.aggr != "sum" or torch.is_autocast_enabled("cpu"):
        return NotImplemented
    x_dict, indices = dicts
    used = {relation: conv for relation, conv in self.convs.items() if relation in indices}
    if not used or not all(_is_plain_sage(conv, key, x_dict, indices[key]) for key, conv in used.items()):
        return NotImplemented
    trail = indices[next(iter(used))].arcs.trail
    terms = [
        Term(
            (key[0], key[-1]),
            indices[key].arcs.graph.plain,
            conv.lin_l.weight.T,
            conv.aggr == "mean",
            conv.lin_r.weight.T if conv.root_weight else None,
            conv.lin_l.bias,
        )
        for key, conv in used.items()
    ]
    run = functools.partial(summed, terms)
    return run(x_dict) if trail is None else trail.run("HeteroConv", run, (x_dict,), {})


def _is_plain_sage(conv: Any, relation: Any, x_dict: dict[Any, Any], index: Any) -> bool:
    """Is it SAGEConv as PyG wrote it, of sums or means, from rows of a type to rows of a type over a whole relation?"""
    layer = sys.modules["torch_geometric.nn"].SAGEConv
    if not isinstance(conv, layer) or not runs_as(conv, layer) or not is_as_written(conv, layer):
        return False
    if is_seen(conv) or any(map(is_lazy, conv.parameters())):
        return False
    usual = conv.aggr in MEANS and not conv.project and not conv.normalize
    if not usual or not all(map(_multiplies, _linears_of_sage(conv))):
        return False
    ends = [x_dict.get(kind) for kind in (relation[0], relation[-1])]
    return are_rows(ends, conv.lin_l.weight.dtype) and _is_relation(index)


def _is_relation(index: Any) -> bool:
    """Does an `edge_index` stand for all arcs of a relation?"""
    return isinstance(index, ArcIndex) and hasattr(index.arcs.graph, "joined") and index.is_whole


def _hgt_conv(self: Any, x_dict: dict[Any, Any], edge_index_dict: dict[Any, Any]) -> Any:
    """HGTConv: keys and values per relation, one softmax over the arcs of all relations at a vertex, one exchange."""
    layer, indices = sys.modules["torch_geometric.nn.conv"].HGTConv, list(edge_index_dict.values())
    usual = all(isinstance(one, RowTensor) for one in x_dict.values())
    inside = self.k_rel, self.v_rel, self.kqv_lin, self.out_lin  # the layers of types are called
    usual = usual and is_as_written(self, layer) and all(map(is_alone, inside))
    if not usual or not indices or not all(map(_is_relation, indices)):
        return NotImplemented
    trail = indices[0].arcs.trail
    run = functools.partial(_hgt_rows, self)
    return run(x_dict, edge_index_dict) if trail is None else trail.run("HGTConv", run, (x_dict, edge_index_dict), {})


def _hgt_rows(self: Any, x_dict: dict[Any, Any], edge_index_dict: dict[Any, Any]) -> Any:
    graphs = {relation: index.arcs.graph.plain for relation, index in edge_index_dict.items()}
    rows = {kind: local_of(one) for kind, one in x_dict.items()}
    spaces = {kind: one.row_space for kind, one in x_dict.items()}
    for relation, index in edge_index_dict.items():
        for kind, role in ((relation[0], "source"), (relation[-1], "target")):
            rows[kind], spaces[kind] = local_in(x_dict[kind], index.arcs, role), index.arcs.graph.space_at(role)
    found = attend_over_types(self, graphs, rows)
    for kind in self.dst_node_types & (x_dict.keys() - found.keys()):  # nothing arrives there
        found[kind] = gated(self, kind, rows[kind].new_zeros(len(rows[kind]), self.out_channels), rows[kind])
    return {kind: rows_of(found[kind], spaces[kind]) for kind in x_dict if kind in found}


def _hetero_linear(self: Any, x: Any, type_vec: Any) -> Any:
    """Each row times the matrix of its type: rows are sorted by type on each rank, and put back."""
    if not isinstance(x, RowTensor) or x.row_dim != 0 or x.dim() != 2:
        return NotImplemented
    types = local_of(rows_in(type_vec, x.row_space, 0, "HeteroLinear"))
    order = types.argsort(stable=True)
    sizes = torch.bincount(types, minlength=self.num_types).tolist()
    blocks = x.inner[order].split(sizes)
    made = torch.cat([rows @ weight for rows, weight in zip(blocks, self.weight, strict=True)])
    made = made if self.bias is None else made + self.bias[types[order]]
    return x.like(made[order.argsort()])


OVER_TYPES: dict[str, Callable[..., Any]] = {
    "HeteroConv": _hetero_conv,
    "HGTConv": _hgt_conv,
    "HeteroLinear": _hetero_linear,
}
