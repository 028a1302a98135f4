"""Tables with a row for each vertex (`dg.nn.NodeEmbedding`) in files: whole, in the order of ids, for any ranks."""

from types import SimpleNamespace
from typing import Any

import torch

from distgnn.graph.global_values import gather_rows
from distgnn.rows import RowTensor
from distgnn.train.steps.own_optimizers import OwnOptimizer

State = dict[str, torch.Tensor]


def in_whole(state: State) -> State:
    """The state with whole tables in place of rows of all ranks, on rank 0; elsewhere without them.

    Collective: yes, where there are tables. Notes: rank 0 holds a whole table.
    """
    made = {name: one for name, one in state.items() if not isinstance(one, RowTensor)}
    for name, rows in ((name, one) for name, one in state.items() if isinstance(one, RowTensor)):
        space = rows.row_space
        of: Any = SimpleNamespace(comm=space.comm, num_owned=space.num_local, owned_ids=space.places)
        of.num_global_nodes = space.num_global
        found = gather_rows(of, rows.inner)
        if found is not None:
            made[name] = torch.from_numpy(found)
    return {name: made[name] for name in state if name in made}


def rows_of_state(state: State, parameters: list[Any]) -> State:
    """An optimiser's state in which what stands beside a table's rows is rows of all ranks, too."""
    return {name: _like(parameters, name, one) for name, one in state.items()}


def load_state(optimizer: OwnOptimizer, state: State, parameters: list[Any]) -> None:
    """Take over an optimiser's state with whole tables."""
    mine = rows_of_state(optimizer.state(), parameters)
    spaces = {name: one.row_space for name, one in mine.items() if isinstance(one, RowTensor)}
    optimizer.load_state(
        {name: spaces[name].local_part(one, 0) if name in spaces else one for name, one in state.items()}
    )


def _like(parameters: list[Any], name: str, one: torch.Tensor) -> Any:
    number = name.rpartition(".")[2]
    of = parameters[int(number)] if number.isdigit() and int(number) < len(parameters) else None
    return of.like(one) if isinstance(of, RowTensor) and one.shape == of.inner.shape else one
