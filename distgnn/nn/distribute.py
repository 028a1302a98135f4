"""distribute: make a torch model that was written for one process right for many."""

from collections.abc import Collection
from typing import Any, TypeGuard, TypeVar

from torch import nn

from distgnn.errors import InputError
from distgnn.interop.pyg.api import INSTEAD as PYG_INSTEAD
from distgnn.nn.conv.graph_module import GraphModule
from distgnn.nn.dropout import Dropout, number_sites
from distgnn.nn.node_embedding import replacement, replaces
from distgnn.nn.norms import batch_norm_like
from distgnn.ops.function import GraphView, is_seen, runs_as

TORCH_BATCH_NORM = nn.modules.batchnorm._BatchNorm
Module = TypeVar("Module", bound=nn.Module)
DRAWING = (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout, nn.FeatureAlphaDropout, nn.RReLU)
ARC_DROPOUT = ("attn_drop", "edge_drop")  # what the layers of DGL call their dropout of arc rows


def distribute(model: nn.Module, graph: GraphView, arc_dropout: Collection[str] = ()) -> nn.Module:
    """Swap, in place, the modules of torch that would work on one rank's rows only.

    `torch.nn.Dropout` (DGL's `feat_drop` and `attn_drop` too) gets masks that belong to vertices or arcs,
    `torch.nn.BatchNorm1d` the statistics of all ranks. `torch.nn.LayerNorm` needs no change. Parameters and buffers are
    kept: they may already be in an optimiser. Modules with hooks, and of subclasses, stay: rows of all ranks are right
    in them, too. An `nn.Embedding` with a row for each vertex becomes a `NodeEmbedding`
    with its values: make the optimiser afterwards. Modules of PyG run on rows of all ranks as they are.

    Args:
        model: any module.
        graph: the DistGraph it will run on.
        arc_dropout: names of attributes, beside DGL's attn_drop and edge_drop, that drop rows of arcs.

    Returns:
        The same model.

    Raises:
        ValueError: for other BatchNorm modules, whose statistics would be one rank's; beside a graph of plain tensors
            also for what has to stay and draws, or takes statistics.
        InputError: for DGL's Sequential, which takes a DGLGraph and nothing like it; for modules of PyG beside a graph
            of plain tensors.

    Example:
        >>> model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.BatchNorm1d(8), torch.nn.Dropout(0.5))
        >>> dg.nn.distribute(model, graph)
        Sequential(
          (0): Linear(in_features=8, out_features=8, bias=True)
          (1): BatchNorm1d(8, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)
          (2): Dropout(p=0.5, site=0, over=vertices)
        )
    """
    if any(type(module).__name__ == "Sequential" and _is_of(module, "dgl.") for module in model.modules()):
        raise InputError("dgl.nn.Sequential takes a DGLGraph only: keep its layers in a ModuleList, and call each one")
    of_pyg = any(_is_of(module, "torch_geometric.") for module in model.modules())
    if of_pyg and not getattr(graph, "knows_rows", False):
        raise InputError(f"modules of PyG cannot run distributed so: {PYG_INSTEAD['edge_index']}")
    on_arcs = {*ARC_DROPOUT, *arc_dropout}
    for module in list(model.modules()):
        for name, child in module.named_children():
            if isinstance(child, GraphModule):
                continue
            if _is_torchs(child, nn.BatchNorm1d):
                setattr(module, name, batch_norm_like(child))
            elif _is_torchs(child, nn.Dropout):
                over = "arcs" if name in on_arcs else "vertices"
                setattr(module, name, Dropout(child.p, over=over).train(child.training))
            elif _is_torchs(child, nn.Embedding) and replaces(child, graph):
                weights = (weight for one in model.modules() for weight in one._parameters.values())
                if sum(weight is child.weight for weight in weights) == 1:  # in no other module
                    setattr(module, name, replacement(child, graph))
            else:
                _check_all_ranks(name, child, graph)
    number_sites(model)
    for module in model.modules():
        if isinstance(module, GraphModule):
            module.graph = getattr(graph, "plain", graph)
    return model


def _is_of(module: Any, library: str) -> bool:
    return any(kind.__module__.startswith(library) for kind in type(module).__mro__)


def _is_torchs(module: Any, kind: type[Module]) -> TypeGuard[Module]:
    """Is a module of this very class, with nobody who sees it: may another take its place?"""
    return type(module) is kind and runs_as(module, kind) and not is_seen(module)


def _check_all_ranks(name: str, module: nn.Module, graph: GraphView) -> None:
    """Raise ValueError where a module that stays would see one rank's rows only."""
    kind = type(module).__name__
    if isinstance(module, TORCH_BATCH_NORM) and not isinstance(module, nn.BatchNorm1d):
        raise ValueError(f"{name} is a {kind}: its statistics would be per rank; use BatchNorm1d")
    if isinstance(module, (nn.BatchNorm1d, *DRAWING)) and not getattr(graph, "knows_rows", False):
        raise ValueError(
            f"{name}, a {kind}, has hooks or a forward pass of its own, or draws as nn.Dropout does not: on plain "
            "tensors it would see one rank's rows; load the graph without plain_tensors, or register hooks afterwards"
        )
