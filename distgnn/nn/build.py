"""Models by name, as the command line and run folders know them."""

from torch import nn

from distgnn.errors import InputError
from distgnn.nn.stacks import GCN, GraphSAGE

MODELS = {"sage": GraphSAGE, "gcn": GCN}


def build_model(
    name: str,
    in_feats: int,
    num_classes: int,
    *,
    hidden_feats: int,
    num_layers: int,
    dropout: float,
    norm: str,
    weighted: bool = False,
) -> nn.Module:
    """A stack by name.

    Raises:
        InputError: for a name that is not a model, or settings that no model can have.
    """
    if name not in MODELS:
        raise InputError(f"unknown model {name!r}: choose from {', '.join(MODELS)}")
    if in_feats < 1:
        raise InputError("the graph has no features: a model needs at least one feature per vertex")
    try:
        options = {"dropout": dropout, "norm": norm, "weighted": weighted}
        return MODELS[name](in_feats, hidden_feats, num_classes, num_layers, **options)
    except ValueError as error:
        raise InputError(str(error)) from error
