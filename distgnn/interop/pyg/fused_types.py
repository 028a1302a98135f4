"""Layers of PyG over several types whose forward pass runs on kernels of ours: HeteroConv of SAGEConv, HGTConv, …

As in fused.py a function returns NotImplemented for what it does not know, and the layer runs as PyG wrote it.
"""

import functools
import sys
from collections.abc import Callable
from typing import Any

import torch
from torch.nn.parameter import is_lazy

from distgnn.interop.in_front import put_in_front
from distgnn.interop.pyg.fused import is_as_written, is_whole
from distgnn.interop.pyg.tensors import ArcIndex, local_in
from distgnn.interop.sum_of_relations import Term, are_rows, summed
from distgnn.ops.attention.over_types import attend_over_types, gated
from distgnn.ops.entry import is_seen
from distgnn.rows.align import local_in as rows_in
from distgnn.rows.row_tensor import RowTensor, local_of, rows_of


def dispatch_in_typed_layers(concerns: Callable[[Any], bool]) -> None:
    layers = sys.modules["torch_geometric.nn"]
    for name, ours in (("HeteroConv", _hetero_conv), ("HGTConv", _hgt_conv), ("HeteroLinear", _hetero_linear)):
        put_in_front(getattr(layers, name), "forward", ours, concerns)


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
    if not isinstance(conv, layer) or type(conv).forward is not layer.forward or not is_as_written(conv, layer):
        return False
    if is_seen(conv) or any(map(is_lazy, conv.parameters())):
        return False
    if conv.aggr not in ("mean", "sum", "add") or conv.project or conv.normalize:
        return False
    ends = [x_dict.get(kind) for kind in (relation[0], relation[-1])]
    return are_rows(ends, conv.lin_l.weight.dtype) and _is_relation(index)


def _is_relation(index: Any) -> bool:
    """Does an `edge_index` stand for all arcs of a relation?"""
    return isinstance(index, ArcIndex) and hasattr(index.arcs.graph, "joined") and is_whole(index)


def _hgt_conv(self: Any, x_dict: dict[Any, Any], edge_index_dict: dict[Any, Any]) -> Any:
    """HGTConv: keys and values per relation, one softmax over the arcs of all relations at a vertex, one exchange."""
    layer, indices = sys.modules["torch_geometric.nn.conv"].HGTConv, list(edge_index_dict.values())
    usual = all(isinstance(one, RowTensor) for one in x_dict.values())
    if not usual or not indices or not is_as_written(self, layer) or not all(map(_is_relation, indices)):
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
