"""NodeEmbedding: a table with a learned row for each vertex; each rank has the rows of the vertices that it owns.

    table = dg.nn.NodeEmbedding(graph, 64)
    optimizer = torch.optim.Adam([*table.parameters(), *model.parameters()], lr=0.01)
    h = model(table.weight, graph.edge_index)       or table(ids), by global id

The weight is a parameter that knows that it is rows of all ranks: gradients and an optimiser's state lie with the rows,
and nothing is summed or copied. `state_dict` and `torch.save` give an ordinary table in the order of global ids, which
`load_state_dict` takes on any number of ranks.
"""

from typing import Any

import torch
from torch import nn
from torch.optim.optimizer import register_optimizer_step_pre_hook

from distgnn.errors import InputError
from distgnn.rows import RowTensor, rows_of
from distgnn.rows.draws import draw_key, normal
from distgnn.rows.gradients import replaced

MOST_WHOLE = 1 << 30  # bytes of a table that is drawn as torch draws it, whole on every rank for a moment
_hooked: list[Any] = []


class NodeEmbedding(nn.Module):
    """A learned row for each vertex of a graph, like `nn.Embedding(num_nodes, embedding_dim)`.

    Collective: the constructor, `forward` with ids, and saving.

    Args:
        graph: what `dg.load` gave.
        embedding_dim: columns, d.
        dtype: of the weight; None: torch's default.
        whole: start from this table [N, d], in the order of global ids, that all ranks have; None: standard normal
            numbers, as `nn.Embedding` under the same seed for a table of at most 1 GiB.

    Raises: InputError for a graph of plain tensors or with update on copies, or a table of another size.

    Example:
        >>> table = dg.nn.NodeEmbedding(graph, 4)
        >>> table().shape
        torch.Size([60, 4])
    """

    num_embeddings: int
    embedding_dim: int

    weight: Any

    def __init__(
        self, graph: Any, embedding_dim: int, dtype: torch.dtype | None = None, whole: torch.Tensor | None = None
    ):
        super().__init__()
        if not getattr(graph, "knows_rows", False):
            raise InputError("NodeEmbedding needs the graph of dg.load(folder), not one with plain_tensors=True")
        if graph.vertex_space.num_counted != graph.vertex_space.num_local:
            raise InputError(
                "NodeEmbedding needs update='owners': with update on copies, rows would be on several ranks"
            )
        self.num_embeddings, self.embedding_dim = int(graph.num_nodes), embedding_dim
        size, dtype = (self.num_embeddings, embedding_dim), dtype or torch.get_default_dtype()
        if whole is not None and tuple(whole.shape) != size:
            raise InputError(f"the table is {list(whole.shape)}: a graph of {size[0]} vertices needs {list(size)}")
        # This rank's rows of the table, as a parameter that is rows of all ranks
        if whole is not None:
            local = graph.vertex_space.local_part(whole.detach(), 0).to(dtype, copy=True)
        elif size[0] * size[1] * dtype.itemsize <= MOST_WHOLE:
            local = graph.vertex_space.local_part(torch.empty(size, dtype=dtype).normal_(), 0).clone()
        else:
            rows = rows_of(torch.empty((graph.vertex_space.num_local, size[1]), dtype=dtype), graph.vertex_space)
            local = normal(rows, draw_key(rows), dtype)
        made: Any = rows_of(local, graph.vertex_space)
        made.requires_grad_()
        made._is_param = True  # `nn.Module` registers it
        self.weight = made
        if not _hooked:
            _hooked.append(register_optimizer_step_pre_hook(_before_step))

    def forward(self, ids: Any = None) -> torch.Tensor:
        """Rows by global id, in the order of `ids`; without ids, or for all of them in order, the rows of vertices."""
        if isinstance(ids, torch.Tensor) and not isinstance(ids, RowTensor) and ids.shape == (self.num_embeddings,):
            ids = None if bool((ids == torch.arange(self.num_embeddings)).all()) else ids
        return self.weight if ids is None else self.weight[ids]

    def extra_repr(self) -> str:
        return f"{self.num_embeddings}, {self.embedding_dim}"

    def reset_parameters(self) -> None:
        with torch.no_grad():
            self.weight.normal_()


def replaces(module: nn.Module, graph: Any) -> bool:
    """Is this a plain table of one row for each vertex of the graph?"""
    if type(module) is not nn.Embedding or not getattr(graph, "knows_rows", False):
        return False
    plain = module.padding_idx is None and module.max_norm is None
    plain = plain and not module.scale_grad_by_freq and not module.sparse and module.weight.requires_grad
    return plain and module.num_embeddings == int(graph.num_nodes)


def replacement(module: nn.Embedding, graph: Any) -> NodeEmbedding:
    """The same table with the rows of vertices at their owners. Collective: yes."""
    made = NodeEmbedding(graph, module.embedding_dim, module.weight.dtype, module.weight.detach())
    replaced[module.weight] = True
    return made.train(module.training)


def _before_step(optimizer: torch.optim.Optimizer, _args: Any, _kwargs: Any) -> None:
    """An optimiser's state that was loaded comes as whole tables: take this rank's rows.

    Raises: InputError for an optimiser that has the weight of a table that was replaced.
    """
    for group in optimizer.param_groups:
        for one in group["params"]:
            if one in replaced:
                raise InputError(
                    "this optimiser has a table that was replaced: make the optimiser after dg.nn.distribute(model, "
                    "graph) and model.double()"
                )
            if isinstance(one, RowTensor):
                state = optimizer.state.get(one, {})
                for name, value in state.items():
                    if isinstance(value, torch.Tensor) and not isinstance(value, RowTensor) and value.dim():
                        if value.shape[0] == one.shape[0]:
                            state[name] = rows_of(one.row_space.local_part(value, 0).clone(), one.row_space)
