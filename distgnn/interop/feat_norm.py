"""Raw features for exported models: what the run did to them stands in front of the model."""

from dataclasses import dataclass
from typing import Any

from torch import nn

from distgnn.graph.features.feat_norm import FeatNorm


@dataclass
class NormalizeInput:
    """A hook in front of a model: does to raw features what was done in training.

    Args: place, name: of the features among the arguments of `forward`.
    """

    norm: FeatNorm
    place: int
    name: str

    def __call__(
        self, _module: nn.Module, args: tuple[Any, ...], named: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        if self.name in named:
            return args, named | {self.name: self._prepared(named[self.name])}
        before, rows, after = args[: self.place], args[self.place], args[self.place + 1 :]
        return (*before, self._prepared(rows), *after), named

    def _prepared(self, rows: Any) -> Any:
        return self.norm(rows).to(rows.dtype)


def with_feat_norm(model: nn.Module, norm: FeatNorm | None, place: int, name: str) -> nn.Module:
    """The model, which takes raw features from now on; parameters keep their names."""
    if norm is not None:
        model.register_forward_pre_hook(NormalizeInput(norm, place, name), with_kwargs=True)
    return model
