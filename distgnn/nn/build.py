"""Models by name, as the command line and run folders know them."""

from torch import nn

from distgnn.config import ATTENTION_MODELS, DEEP_MODELS, ModelConfig
from distgnn.errors import InputError
from distgnn.nn.deep_stacks import APPNP, GCN2
from distgnn.nn.stacks import GAT, GCN, GIN, GATv2, GraphSAGE

STACKS = {"sage": GraphSAGE, "gcn": GCN, "gin": GIN, "gat": GAT, "gatv2": GATv2, "gcn2": GCN2, "appnp": APPNP}


def build_model(config: ModelConfig, in_feats: int, num_classes: int) -> nn.Module:
    """The stack that `config` describes, for a graph's feature width and number of classes.

    Raises:
        InputError: for settings that no model can have, or a graph without features.
    """
    config.check()
    if in_feats < 1:
        raise InputError("the graph has no features: a model needs at least one feature per vertex")
    options = {"dropout": config.dropout, "norm": config.norm, "weighted": config.weighted}
    if config.name in ATTENTION_MODELS:
        options["num_heads"] = config.num_heads
    if config.name not in DEEP_MODELS:
        options |= {"residual": config.residual, "jump": config.jump}
    return STACKS[config.name](in_feats, config.hidden_feats, num_classes, config.num_layers, **options)
