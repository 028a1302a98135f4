"""Models by name, as the command line and run folders know them."""

from torch import nn

from distgnn.config import ModelConfig
from distgnn.errors import InputError
from distgnn.nn.stacks import GCN, GraphSAGE

STACKS = {"sage": GraphSAGE, "gcn": GCN}


def build_model(config: ModelConfig, in_feats: int, num_classes: int) -> nn.Module:
    """The stack that `config` describes, for a graph's feature width and number of classes.

    Raises:
        InputError: for settings that no model can have, or a graph without features.
    """
    config.check()
    if in_feats < 1:
        raise InputError("the graph has no features: a model needs at least one feature per vertex")
    return STACKS[config.name](
        in_feats,
        config.hidden_feats,
        num_classes,
        config.num_layers,
        dropout=config.dropout,
        norm=config.norm,
        weighted=config.weighted,
    )
