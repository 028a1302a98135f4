"""Everything that touches DGL: importing it, and running its built-in message functions on a DistGraph."""

from distgnn import ops
from distgnn.dgl_import import import_dgl, register_packaging
from distgnn.errors import InputError

__all__ = ["import_dgl", "register_packaging", "update_all"]

MESSAGES = ("copy_u", "u_mul_e")
REDUCERS = ("sum", "mean")


def update_all(graph, message_func, reduce_func) -> None:
    """Run DGL's `update_all(message, reduce)` over the whole graph; the result lands in `graph.dstdata`.

    Collective: yes, and again in the backward pass.

    Args:
        message_func: `dgl.function.copy_u` or `u_mul_e` (edge data [A] or [A, 1, ...]).
        reduce_func: `dgl.function.sum` or `mean`. A mean divides by the in-degree in the whole graph.

    Raises:
        InputError: for any other function, naming those that run.
    """
    message, reducer = _name_of(message_func), _name_of(reduce_func)
    if message not in MESSAGES or reducer not in REDUCERS:
        raise InputError(
            f"update_all({message}, {reducer}) cannot run distributed: use the built-in functions "
            f"dgl.function.{'/'.join(MESSAGES)} with dgl.function.{'/'.join(REDUCERS)}, or the layers of distgnn.nn"
        )
    if message == "copy_u":
        feats, edge_weight = graph.srcdata[message_func.in_field], None
    else:
        feats, edge_weight = graph.srcdata[message_func.lhs_field], graph.edata[message_func.rhs_field]
    target_scale = graph.degree_scale("in", -1) if reducer == "mean" else None
    graph.dstdata[reduce_func.out_field] = ops.spmm(graph, feats, edge_weight, target_scale=target_scale)


def _name_of(function) -> str:
    return getattr(function, "name", None) or getattr(function, "__name__", type(function).__name__)
