"""Layers of PyG over several types whose forward pass runs on kernels of ours: HeteroConv of SAGEConv, HGTConv, …

As in fused.py a function returns NotImplemented for what it does not know, and the layer runs as PyG wrote it.
"""

import functools
import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch.nn import functional
from torch.nn.parameter import is_lazy

from distgnn import ops
from distgnn.interop.in_front import put_in_front
from distgnn.interop.pyg.arc_set import ArcSet
from distgnn.interop.pyg.functions import FLOATS
from distgnn.interop.pyg.fused import attended, is_as_written, is_whole
from distgnn.interop.pyg.tensors import ArcIndex, local_in
from distgnn.ops.aggregation.along_relations import along_relations
from distgnn.rows.align import local_in as rows_in
from distgnn.rows.row_tensor import RowTensor, local_of, rows_of

OF_MODULES = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


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
    run = functools.partial(_sum_of_sage, used)
    return run(x_dict, indices) if trail is None else trail.run("HeteroConv", run, (x_dict, indices), {})


def _is_plain_sage(conv: Any, relation: Any, x_dict: dict[Any, Any], index: Any) -> bool:
    """Is it SAGEConv as PyG wrote it, of sums or means, from rows of a type to rows of a type over a whole relation?"""
    layer = sys.modules["torch_geometric.nn"].SAGEConv
    if not isinstance(conv, layer) or type(conv).forward is not layer.forward or not is_as_written(conv, layer):
        return False
    changed = any(getattr(conv, name) for name in OF_MODULES) or any(map(is_lazy, conv.parameters()))
    if changed or conv.aggr not in ("mean", "sum", "add") or conv.project or conv.normalize:
        return False
    ends = [x_dict.get(kind) for kind in (relation[0], relation[-1])]
    usual = all(isinstance(one, RowTensor) and one.dim() == 2 and one.dtype in FLOATS for one in ends)
    return usual and _is_relation(index)


def _is_relation(index: Any) -> bool:
    """Does an `edge_index` stand for all arcs of a relation?"""
    return isinstance(index, ArcIndex) and index.arcs.rows and hasattr(index.arcs.graph, "joined") and is_whole(index)


def _sum_of_sage(convs: dict[Any, Any], x_dict: dict[Any, Any], indices: dict[Any, Any]) -> Any:
    arcs = {relation: indices[relation].arcs for relation in convs}
    rows = [local_in(x_dict[relation[0]], one, roles=("source",)) for relation, one in arcs.items()]
    means = [conv.aggr == "mean" for conv in convs.values()]
    weights = [conv.lin_l.weight.T for conv in convs.values()]
    made = along_relations([one.graph for one in arcs.values()], rows, weights, means)
    found: dict[Any, Any] = {}
    for kind in dict.fromkeys(relation[-1] for relation in convs):
        into = [(conv, arcs[key], one) for (key, conv), one in zip(convs.items(), made, strict=True) if key[-1] == kind]
        terms = [one for _, _, one in into]
        biases = [conv.lin_l.bias for conv, _, _ in into if conv.lin_l.bias is not None]
        bias = sum(biases) if biases else None
        of_own = [conv.lin_r.weight for conv, _, _ in into if conv.root_weight]
        if of_own:
            own = local_in(x_dict[kind], into[0][1], roles=("target",))
            out = functional.linear(own, sum(of_own), bias)
        else:
            out = terms.pop(0) if bias is None else terms.pop(0) + bias
        found[kind] = rows_of(sum(terms, out), into[0][1].graph.space_at("target"))
    return found


def _hgt_conv(self: Any, x_dict: dict[Any, Any], edge_index_dict: dict[Any, Any]) -> Any:
    """HGTConv: keys and values per relation, one softmax over the arcs of all relations at a vertex, one exchange."""
    layer, indices = sys.modules["torch_geometric.nn.conv"].HGTConv, list(edge_index_dict.values())
    if not indices or not is_as_written(self, layer) or not all(map(_is_relation, indices)):
        return NotImplemented
    trail = indices[0].arcs.trail
    run = functools.partial(_hgt_rows, self)
    return run(x_dict, edge_index_dict) if trail is None else trail.run("HGTConv", run, (x_dict, edge_index_dict), {})


def _hgt_rows(self: Any, x_dict: dict[Any, Any], edge_index_dict: dict[Any, Any]) -> Any:
    indices = list(edge_index_dict.values())
    heads, width = self.heads, self.out_channels // self.heads
    parts = {name: rows.view(-1, 3, heads, width) for name, rows in self.kqv_lin(x_dict).items()}
    names = list(parts)
    offsets = dict(zip(names, np.cumsum([0, *(len(rows) for rows in parts.values())]).tolist(), strict=False))
    keys, values, shifts, begin = [], [], [], 0
    for relation in edge_index_dict:
        places = [head * len(self.edge_types) + self.edge_types_map[relation] for head in range(heads)]
        factors = self.p_rel["__".join(relation)].view(heads, 1, 1) / math.sqrt(width)
        key, _, value = local_of(parts[relation[0]]).flatten(2).unbind(1)
        keys.append(key @ torch.block_diag(*self.k_rel.weight[places] * factors))
        values.append(value @ torch.block_diag(*self.v_rel.weight[places]))
        shifts.append((begin, offsets[relation[-1]]))
        begin += len(parts[relation[0]])
    graph = indices[0].arcs.graph.joined([one.arcs.graph for one in indices], shifts)
    arcs = ArcSet(graph, rows=True)
    queries = local_in(torch.cat([parts[name][:, 1] for name in names]), arcs, roles=("target",))
    key, value = (torch.cat(ones).view(-1, heads, width) for ones in (keys, values))
    summed = attended(arcs, value, lambda some: ops.pair_dots(graph, key[:, some], queries[:, some]))
    out = rows_of(summed.flatten(1), graph.space_at("target"))
    ends = {name: out[first : first + len(parts[name])] for name, first in offsets.items()}
    found = {name: rows for name, rows in ends.items() if name in self.dst_node_types}
    made = self.out_lin({name: functional.gelu(rows) for name, rows in found.items()})
    for name, rows in made.items():
        if rows.size(-1) == x_dict[name].size(-1):
            alpha = self.skip[name].sigmoid()
            rows = alpha * rows + (1 - alpha) * x_dict[name]
        found[name] = rows
    return found


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
