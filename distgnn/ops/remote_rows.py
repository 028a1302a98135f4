"""Rows of any vertices by global id, differentiable: gradients go back to the owners.

Legend: O owned rows, B borrowed rows (of other ranks' vertices), D width.

    lookup = RowLookup(graph, ids)         asks the owners; once for ids that stay
    table  = lookup.table(rows)            [O + B, D]: owned rows, and borrowed ones by one broadcast
    table[lookup.places]                   the rows of `ids`, as often as they are named

backward: the gradients of borrowed rows travel back by the transposed exchange and are added at their owners, after the
owner's own, in the order of ranks.
"""

import numpy as np
import torch

from distgnn.comm import Exchange, raise_together
from distgnn.comm.plans import request_plan
from distgnn.errors import InputError
from distgnn.ops.aggregation.halo import as_array, reduce_onto
from distgnn.ops.function import GraphView, linear_map, operator


class RowLookup:
    """Where the rows of some vertices are: those owned here, and those borrowed from their owners.

    Collective: the constructor, and `table`.

    Args: global_ids: integers of any shape; each rank its own, also none.

    Attributes:
        places: int64, the shape of `global_ids`: rows of `table`.

    Raises: InputError, on every rank, for an id that is no vertex.

    Example:
        >>> lookup = dg.ops.RowLookup(graph, np.array([7, 0, 7]))
        >>> lookup.table(graph.feats)[lookup.places].shape
        torch.Size([3, 8])
    """

    num_owned: int
    num_borrowed: int

    def __init__(self, graph: GraphView, global_ids: np.ndarray | torch.Tensor):
        ids = np.asarray(global_ids)
        owners, transport = graph.owners, graph.transport
        with raise_together(transport.comm):
            if ids.dtype.kind not in "iu":
                raise InputError(f"global ids are {ids.dtype}: expected integers")
            owners.check(ids)
        flat = ids.reshape(-1).astype(np.int64)
        here = owners.rank_of(flat) == transport.rank
        others, numbers = np.unique(flat[~here], return_inverse=True)
        order = np.argsort(owners.rank_of(others), kind="stable")
        self.num_owned, self.num_borrowed = graph.num_owned, len(others)
        self.exchange: Exchange = Exchange(request_plan(transport, owners, others[order], graph.num_owned), transport)
        arrival = np.empty(len(others), dtype=np.int64)
        arrival[order] = np.arange(len(others))
        places = np.empty(len(flat), dtype=np.int64)
        places[here] = owners.rows_of(flat[here])
        places[~here] = graph.num_owned + arrival[numbers.reshape(-1)]
        self.places: torch.Tensor = torch.from_numpy(places.reshape(ids.shape))

    @operator
    def table(self, rows: torch.Tensor) -> torch.Tensor:
        """[O + B, D]: owned rows, then borrowed ones, from the model's rows [O, D]. Collective: yes, and backward."""
        owned = rows[: self.num_owned]
        if self.exchange.transport.num_ranks == 1:
            return owned
        return linear_map(owned, self._with_borrowed, self.onto_owners)

    def few(self, rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """(the rows that are asked for, each once [U, D]; places in these), without gradients. Collective: yes."""
        used, places = np.unique(self.places.numpy(), return_inverse=True)
        here = used < self.num_owned
        found = rows.new_empty((len(used), *rows.shape[1:]))
        found[here] = rows[used[here]]
        if self.exchange.transport.num_ranks > 1:
            found[~here] = self._borrowed(rows[: self.num_owned])[used[~here] - self.num_owned]
            self.exchange.drain()
        return found, torch.from_numpy(places.reshape(self.places.shape))

    def _borrowed(self, owned: torch.Tensor) -> torch.Tensor:
        """Valid until the exchange is drained."""
        self.exchange.start_broadcast(_flat(owned))
        borrowed = torch.from_numpy(self.exchange.finish_broadcast()).view(owned.dtype)
        return borrowed.view(len(borrowed), *owned.shape[1:])

    def _with_borrowed(self, owned: torch.Tensor) -> torch.Tensor:
        out = torch.cat([owned, self._borrowed(owned)])
        self.exchange.drain()
        return out

    def onto_owners(self, grad: torch.Tensor) -> torch.Tensor:
        """Rows of `table` [O + B, D] are added at their owners, without gradients: [O, D]. Collective: yes."""
        everything = _flat(grad)
        out, borrowed = everything[: self.num_owned].copy(), everything[self.num_owned :]
        reduce_onto(self.exchange, borrowed, out)
        self.exchange.drain()
        return torch.from_numpy(out).view(grad.dtype).view(self.num_owned, *grad.shape[1:])


@operator
def gather_rows_at(graph: GraphView, rows: torch.Tensor, global_ids: np.ndarray | torch.Tensor) -> torch.Tensor:
    """The rows of any vertices of the whole graph, by global id.

    Collective: yes, and again in the backward pass.

    Args:
        rows: the model's rows, [O, D].
        global_ids: integers of any shape; each rank asks for what it needs, also nothing, also one vertex many times.

    Returns: [*global_ids.shape, D].

    Raises: InputError, on every rank, for an id that is no vertex.

    Notes: exact and deterministic: a row's gradients are added in the order of ranks. For ids that stay from step to
        step make a `RowLookup` once, which spares asking the owners.

    Example:
        >>> dg.ops.gather_rows_at(graph, graph.feats, np.array([[7, 0], [0, 7]])).shape
        torch.Size([2, 2, 8])
    """
    lookup = RowLookup(graph, global_ids)
    found = lookup.table(rows).index_select(0, lookup.places.reshape(-1))
    return found.view(*lookup.places.shape, *rows.shape[1:])


def _flat(rows: torch.Tensor) -> np.ndarray:
    return as_array(rows.reshape(len(rows), rows.shape[1:].numel()))
