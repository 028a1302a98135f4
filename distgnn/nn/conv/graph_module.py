"""GraphModule: a module that needs the graph but stands where torch gives it rows only."""

from typing import Any

from torch import nn

from distgnn.errors import InputError
from distgnn.ops.graph_view import GraphView


class GraphModule(nn.Module):
    """Base of dropout and norms: the graph comes with the call, or once by `distgnn.nn.distribute(model, graph)`."""

    graph: GraphView | None = None

    def graph_of(self, given: GraphView | None) -> GraphView:
        """The graph of this call.

        Raises: ValueError where there is none.
        """
        graph = given if given is not None else self.graph
        if graph is None:
            kind = type(self).__name__
            raise ValueError(f"this {kind} knows no graph: pass it, or call distgnn.nn.distribute(model, graph) first")
        return graph


def check_in_arcs(layer: Any, graph: GraphView, who: str = "") -> None:
    """Raise InputError, on all ranks, for vertices without in-arcs where the layer does not allow them."""
    if not layer.allow_zero_in_degree and graph.has_zero_in_degree():
        raise InputError(
            f"there are vertices without in-arcs{who}: partition with --self-loops add, or set "
            "allow_zero_in_degree=True"
        )
