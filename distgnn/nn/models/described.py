"""Models of ours that can say what they are, and become PyG's."""

from typing import Any, ClassVar

from torch import nn

from distgnn.config import ModelConfig
from distgnn.errors import InputError


class Described(nn.Module):
    """Base of our stacks: their settings and sizes, read from the model as it is."""

    config_name: ClassVar[str]  # as of `ModelConfig`
    sizes: tuple[int, int, int]  # of input, hidden layers and output
    norm: str
    weighted: bool
    drops: nn.ModuleList

    def described(self) -> tuple[ModelConfig, dict[str, int], dict[str, float]]:
        """Settings; sizes of the graph it is for; and numbers of its layers that are no settings.

        Raises: InputError for a class that is not ours.
        """
        if "config_name" not in vars(type(self)):
            raise InputError(
                f"{type(self).__name__} is a class of your own: write it with PyG's layers, and load its weights"
            )
        in_feats, hidden_feats, num_classes = self.sizes
        drop: Any = self.drops[0] if len(self.drops) else None
        options: dict[str, Any] = {"dropout": 0.0 if drop is None else drop.p, "norm": self.norm}
        options |= {"weighted": self.weighted} | self.own_settings()
        config = ModelConfig(self.config_name, hidden_feats, **options)
        return config, {"num_feats": in_feats, "num_classes": num_classes} | self.graph_sizes(), self.layer_numbers()

    def own_settings(self) -> dict[str, Any]:
        """Fields of `ModelConfig` that not all models have."""
        raise NotImplementedError

    def graph_sizes(self) -> dict[str, int]:
        """Further sizes of the graph."""
        return {}

    def layer_numbers(self) -> dict[str, float]:
        """Numbers of the layers that are no settings."""
        return {}

    def to_pyg(self) -> nn.Module:
        """This model of PyG's layers, in evaluation mode, with the weights as they are now: see `dg.to_pyg`.

        Raises: InputError for a model that PyG has no layers for.
        """
        import distgnn

        return distgnn.to_pyg(self)
