"""GraphModule: a module that needs the graph but stands where torch gives it rows only."""

from torch import nn

from distgnn.nn.protocol import DataGraph


class GraphModule(nn.Module):
    """Base of dropout and norms: the graph comes with the call, or once by `distgnn.nn.distribute(model, graph)`."""

    graph: DataGraph | None = None

    def graph_of(self, given: DataGraph | None) -> DataGraph:
        """The graph of this call.

        Raises: ValueError where there is none.
        """
        graph = given if given is not None else self.graph
        if graph is None:
            kind = type(self).__name__
            raise ValueError(f"this {kind} knows no graph: pass it, or call distgnn.nn.distribute(model, graph) first")
        return graph
