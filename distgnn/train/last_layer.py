"""Embeddings of a trained model: the rows that its last layer with weights is given."""

from typing import Any

import torch
from torch import nn

from distgnn.errors import InputError, on_all_ranks
from distgnn.rows import RowTensor
from distgnn.rows.align import in_space


class LastLayer:
    """Watches a model from now on; `rows` after one call of it.

    Of the modules with weights that the model calls, the last one; a model that calls only one is looked into. No more
    than one input for each depth of modules is held.
    """

    def __init__(self, model: nn.Module):
        self._calls: list[tuple[int, Any]] = []  # by depth: calls within the one above, and what the last was given
        self._depth, self._model = 0, type(model).__name__
        for module in model.modules():
            if next(module.parameters(), None) is not None:
                module.register_forward_pre_hook(self._enter, with_kwargs=True)
                module.register_forward_hook(self._leave)

    def _enter(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        count = self._calls[self._depth][0] if self._depth < len(self._calls) else 0
        del self._calls[self._depth :]
        self._calls.append((count + 1, _rows_among((*args, *kwargs.values()))))
        self._depth += 1

    def _leave(self, module: nn.Module, args: Any, made: Any) -> None:
        self._depth -= 1

    def rows(self, graph: Any) -> torch.Tensor:
        """This rank's rows [O, D] of the vertices, before its last layer. Collective: yes."""
        depth = min(1, len(self._calls) - 1)
        while depth + 1 < len(self._calls) and self._calls[depth][0] == 1 and self._calls[depth + 1][0] > 1:
            depth += 1
        found = self._calls[depth][1] if self._calls else None
        if isinstance(found, RowTensor):
            space = graph.face.vertex_space
            fits = not found.row_dim and found.shape[0] == space.num_global
            found = in_space(found, space).inner if fits else None
        if found is None or len(found) < graph.num_owned:
            raise on_all_ranks(
                InputError(f"{self._model} has no last layer that is given a row of each vertex: it has no embeddings")
            )
        return found.detach()[: graph.num_owned]


def _rows_among(given: tuple[Any, ...]) -> Any:
    """The first argument that is rows of floats; of a pair, as PyG's layers take, those of the targets."""
    for one in given:
        one = one[-1] if isinstance(one, tuple) and one else one
        if isinstance(one, torch.Tensor) and one.is_floating_point() and one.dim() > 1:
            return one
    return None
