"""distribute: make a torch model that was written for one process right for many."""

from collections.abc import Collection
from typing import Any

from torch import nn

from distgnn.errors import InputError
from distgnn.interop.pyg.api import INSTEAD as PYG_INSTEAD
from distgnn.nn.conv.graph_module import GraphModule
from distgnn.nn.dropout import Dropout, number_sites
from distgnn.nn.node_embedding import replacement, replaces
from distgnn.nn.norms import batch_norm_like
from distgnn.ops.graph_view import GraphView

TORCH_BATCH_NORM = nn.modules.batchnorm._BatchNorm
ARC_DROPOUT = ("attn_drop", "edge_drop")  # what the layers of DGL call their dropout of arc rows


def distribute(model: nn.Module, graph: GraphView, arc_dropout: Collection[str] = ()) -> nn.Module:
    """Swap, in place, the modules of torch that would work on one rank's rows only.

    `torch.nn.Dropout` (DGL's `feat_drop` and `attn_drop` too) gets masks that belong to vertices or arcs,
    `torch.nn.BatchNorm1d` the statistics of all ranks. `torch.nn.LayerNorm` needs no change. Parameters and buffers are
    kept: they may already be in an optimiser. An `nn.Embedding` with a row for each vertex becomes a `NodeEmbedding`
    with its values: make the optimiser afterwards. Modules of PyG run on rows of all ranks as they are.

    Args:
        model: any module.
        graph: the DistGraph it will run on.
        arc_dropout: names of attributes, beside DGL's attn_drop and edge_drop, that drop rows of arcs.

    Returns:
        The same model.

    Raises:
        ValueError: for other BatchNorm modules, whose statistics would be one rank's.
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
            if isinstance(child, TORCH_BATCH_NORM):
                setattr(module, name, _over_all_ranks(name, child))
            elif isinstance(child, nn.Embedding) and replaces(child, graph):
                weights = (weight for one in model.modules() for weight in one._parameters.values())
                if sum(weight is child.weight for weight in weights) == 1:  # in no other module
                    setattr(module, name, replacement(child, graph))
            if isinstance(child, nn.Dropout):
                over = "arcs" if name in on_arcs else "vertices"
                setattr(module, name, Dropout(child.p, over=over).train(child.training))
    number_sites(model)
    for module in model.modules():
        if isinstance(module, GraphModule):
            module.graph = getattr(graph, "plain", graph)
    return model


def _is_of(module: Any, library: str) -> bool:
    return any(kind.__module__.startswith(library) for kind in type(module).__mro__)


def _over_all_ranks(name: str, norm: nn.Module) -> nn.Module:
    if type(norm) is not nn.BatchNorm1d:
        raise ValueError(f"{name} is a {type(norm).__name__}: its statistics would be per rank; use BatchNorm1d")
    return batch_norm_like(norm)
