"""DGL's message passing on a DistGraph: built-in functions and functions of edges, over the whole graph.

A message function of the user is called once per rank with all its arcs: it must treat each edge by itself, as DGL
asks of it too. Reducers are built-in, because a vertex's arcs lie on several ranks.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NoReturn

import torch

from distgnn.errors import InputError
from distgnn.ops.edges import messages


def update_all(
    graph: Any, message_func: Any, reduce_func: Any, apply_node_func: Callable[..., Any] | None = None
) -> None:
    """Run DGL's `update_all` over the whole graph; the result lands in `graph.dstdata`.

    Collective: yes, and again in the backward pass.

    Args:
        message_func: a function of `dgl.function`, or one of edges (src, dst, data) that treats each edge by itself.
        reduce_func: `dgl.function.sum`, `mean`, `max` or `min`. A mean divides by the in-degree in the whole graph.
        apply_node_func: called with nodes (data) afterwards.

    Raises:
        InputError: for what cannot run distributed, naming what can.
    """
    name, rows = reduced(graph, message_func, reduce_func)
    graph.dstdata[name] = rows
    if apply_node_func is not None:
        apply_nodes(graph, apply_node_func)


def reduced(graph: Any, message_func: Any, reduce_func: Any) -> tuple[str, Any]:
    """(name, rows) of what messages add up to at targets: 0 where there is none. Collective: yes, and backward."""
    reducer = _name_of(reduce_func)
    if reducer not in messages.REDUCERS or not hasattr(reduce_func, "msg_field"):
        names = "/".join(messages.REDUCERS)
        raise InputError(
            f"update_all(…, {reducer}) cannot run distributed, because the arcs of a vertex lie on several ranks: "
            f"reduce with the built-in functions dgl.function.{names}, or use the layers of distgnn.nn"
        )
    name, wanted = _name_of(message_func), reduce_func.msg_field
    builtin = _is_builtin(message_func)
    if builtin and message_func.out_field != wanted:
        raise InputError(
            f"the message function writes {message_func.out_field!r}, the reduce function reads {wanted!r}: give both "
            "one name"
        )
    if builtin and name == "copy_u":
        out = messages.gspmm(graph, "copy_lhs", reducer, graph.srcdata[message_func.in_field], None)
    elif builtin and name.startswith("u_") and name.endswith("_e"):
        rows, arc_rows = graph.srcdata[message_func.lhs_field], graph.edata[message_func.rhs_field]
        out = messages.gspmm(graph, message_func.binary_op, reducer, rows, arc_rows)
    else:
        made = _messages(graph, message_func)
        if wanted not in made:
            raise InputError(f"the message function gives {sorted(made)}, the reduce function {wanted!r}")
        out = messages.reduce_arcs(graph, made[wanted], reducer)
    return reduce_func.out_field, out


def apply_edges(graph: Any, func: Any) -> None:
    """Run DGL's `apply_edges` on all arcs; the result lands in `graph.edata`.

    Collective: yes, and again in the backward pass.

    Args: func: a function of `dgl.function`, or one of edges (src, dst, data) that treats each edge by itself.
    """
    graph.edata.update(_messages(graph, func))


def apply_nodes(graph: Any, func: Callable[..., Any]) -> None:
    """Run a function of nodes (data) on owned vertices, targets of arcs; the result lands in `graph.dstdata`."""
    graph.dstdata.update(func(Batch(graph.num_dst_nodes(), graph.dstdata)))


def _messages(graph: Any, func: Any) -> dict[str, torch.Tensor]:
    """What a message function puts on the arcs, by name."""
    if _is_builtin(func):
        frames = {"u": graph.srcdata, "v": graph.dstdata, "e": graph.edata}
        if func.name.startswith("copy_"):
            end = func.name[-1]
            return {func.out_field: messages.on_arcs(graph, frames[end][func.in_field], end)}
        left, op, right = func.name.split("_")
        rows = frames[left][func.lhs_field], frames[right][func.rhs_field]
        return {func.out_field: messages.gsddmm(graph, op, *rows, left, right)}
    if not callable(func):
        raise InputError(f"{func!r} is no message function: use dgl.function, or a function of edges")
    ends = {"src": Ends(graph, "source"), "dst": Ends(graph, "target")}
    made = func(Batch(graph.num_edges(), graph.edata, canonical_etype=graph.canonical_etypes[0], **ends))
    for name, column in made.items():
        if len(column) != graph.num_edges():
            raise InputError(
                f"message function {_name_of(func)} gives {len(column)} rows {name!r} for {graph.num_edges()} arcs: to "
                "run distributed it must treat each edge by itself"
            )
    return made


class Batch:
    """What a user's function sees: `data`, and for edges `src`, `dst` and `canonical_etype`."""

    def __init__(self, size: int, data: Any, **others: Any):
        self._size = size
        self.data = data
        self.__dict__.update(others)

    def batch_size(self) -> int:
        return self._size

    __len__ = batch_size

    def __getattr__(self, name: str) -> NoReturn:
        raise InputError(f"a function of edges or nodes has no {name!r} on several ranks: use src, dst and data")


class Ends(Mapping[str, torch.Tensor]):
    """Columns at one end of every local arc, brought there when first asked for. Collective: `[name]`."""

    def __init__(self, graph: Any, role: str):
        self._graph, self._role = graph, role
        self._columns = graph.srcdata if role == "source" else graph.dstdata
        self._made: dict[str, torch.Tensor] = {}

    def __getitem__(self, name: str) -> torch.Tensor:
        if name not in self._made:
            self._made[name] = messages.to_arcs(self._graph, self._columns[name], self._role)
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)


def _is_builtin(func: Any) -> bool:
    return hasattr(func, "out_field") and hasattr(func, "name")


def _name_of(func: Any) -> str:
    return str(getattr(func, "name", None) or getattr(func, "__name__", type(func).__name__))
