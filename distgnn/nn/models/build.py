"""Models by name, as the command line and run folders know them."""

from torch import nn

from distgnn.config import ATTENTION_MODELS, DEEP_MODELS, EDGE_MODELS, UNWEIGHTED_MODELS, ModelConfig, check_graph_has
from distgnn.config.extras import attached
from distgnn.config.model import decoder_for
from distgnn.config.task import PAIR_TASKS, check_graph_for
from distgnn.errors import InputError
from distgnn.graph.task_rows import TaskRows, rows_of_task
from distgnn.nn.models.deep_stacks import APPNP, GCN2
from distgnn.nn.models.edge_stacks import GINE, RGCN, EdgeGAT
from distgnn.nn.models.stacks import GAT, GCN, GIN, Described, GATv2, GraphSAGE
from distgnn.nn.models.typed_stack import typed_model_for
from distgnn.nn.pair_predictor import PairDecoder, PairPredictor
from distgnn.ops.function import GraphView

CLASSES: tuple[type[Described], ...] = (GraphSAGE, GCN, GIN, GAT, GATv2, GCN2, APPNP, GINE, EdgeGAT, RGCN)
STACKS = {one.config_name: one for one in CLASSES}


def model_for(config: ModelConfig, graph: GraphView, task: str = "node") -> nn.Module:
    """The stack that `config` describes, with the sizes of a DistGraph; see `build_model`.

    Args: task: what it predicts; of pairs of vertices a `PairPredictor`, whose encoder is the stack.

    Raises: InputError as `build_model`, or where the graph has not what the task predicts.

    Example:
        >>> model = dg.nn.model_for(dg.ModelConfig("gat", hidden_feats=8, num_layers=2), graph)
        >>> model(graph, graph.feats).shape
        torch.Size([60, 4])
    """
    task_rows = graph if task in PAIR_TASKS else rows_of_task(graph)
    outputs = task_rows.num_classes
    if task == "regression":
        outputs = task_rows.num_values or (outputs if task_rows.info["multilabel"] else 1)
    if isinstance(task_rows, TaskRows):
        return typed_model_for(config, graph, task_rows, outputs)
    sizes = {name: getattr(graph, name) for name in ("num_edge_feats", "num_relations", "num_node_types")}
    config.check_beside(task=task)
    decoder = decoder_for(task, config.decoder)
    check_graph_for(task, graph.info)
    if decoder is None:
        return build_model(config, graph.num_feats, outputs, **sizes)
    encoder = build_model(config, graph.num_feats, config.hidden_feats, **sizes)
    outputs_of_pair = graph.info["num_edge_classes"] if task == "edge" else None
    return PairPredictor(encoder, PairDecoder(decoder, config.hidden_feats, outputs_of_pair))


def build_model(
    config: ModelConfig,
    in_feats: int,
    num_classes: int,
    *,
    num_edge_feats: int = 0,
    num_relations: int = 0,
    num_node_types: int = 0,
) -> nn.Module:
    """The stack that `config` describes, for a graph's feature width and number of classes.

    Args:
        num_edge_feats: width of edge features, for gine and edgegat.
        num_relations, num_node_types: edge and vertex types, for rgcn.

    Raises:
        InputError: for settings that no model can have, or a graph without what the model needs.

    Example:
        >>> model = dg.nn.build_model(dg.ModelConfig("gcn", hidden_feats=8, num_layers=2), in_feats=8, num_classes=4)
        >>> type(model).__name__, len(model.convs)
        ('GCN', 2)
    """
    config.check()
    if in_feats < 1:
        raise InputError("the graph has no features: a model needs at least one feature per vertex")
    check_graph_has(config.name, num_edge_feats, num_relations)
    options = {"dropout": config.dropout, "norm": config.norm}
    if config.name not in UNWEIGHTED_MODELS:
        options["weighted"] = config.weighted
    if config.name in EDGE_MODELS:
        options["num_edge_feats"] = num_edge_feats
    if config.name == "rgcn":
        options |= {"num_relations": num_relations, "num_node_types": num_node_types, "num_bases": config.num_bases}
    if config.name in ATTENTION_MODELS:
        options["num_heads"] = config.num_heads
    if config.name not in DEEP_MODELS:
        options |= {"block": config.around, "remat": config.remat}
    else:
        options["input_dropout"] = config.input_dropout
    around = [found for wrap in attached("model") if (found := wrap(config, num_classes)) is not None]
    in_feats += sum(columns for columns, _ in around)
    model: nn.Module = STACKS[config.name](in_feats, config.hidden_feats, num_classes, config.num_layers, **options)
    for _, wrap in around:
        model = wrap(model)
    return model
