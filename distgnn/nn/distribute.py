"""distribute: make a torch model that was written for one process right for many."""

from torch import nn

from distgnn.nn.dropout import Dropout, number_sites


def distribute(model: nn.Module, graph) -> nn.Module:
    """Swap the `torch.nn.Dropout` modules of `model`, in place, for ones whose masks belong to vertices.

    DGL's `feat_drop` are such modules too. `torch.nn.LayerNorm` needs no change.

    Returns:
        The same model.

    Raises:
        ValueError: for BatchNorm modules, whose statistics would be those of one rank.
    """
    for module in list(model.modules()):
        for name, child in module.named_children():
            if isinstance(child, nn.modules.batchnorm._BatchNorm):
                raise ValueError(f"{name} is a {type(child).__name__}: its statistics would be per rank; use LayerNorm")
            if isinstance(child, nn.Dropout):
                setattr(module, name, Dropout(child.p).train(child.training))
    number_sites(model)
    for module in model.modules():
        if isinstance(module, Dropout):
            module.graph = graph
    return model


def modules_per_rank(model: nn.Module) -> list[str]:
    """Names of modules that work on one rank's rows only (torch's own dropout and batch norms)."""
    kinds = (nn.modules.batchnorm._BatchNorm, nn.Dropout)
    found = (name for name, module in model.named_modules() if isinstance(module, kinds))
    return [name for name in found if getattr(model.get_submodule(name), "p", 1) != 0]
