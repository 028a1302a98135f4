"""Stacks whose messages use what arcs have: features, `graph.edata["feat"]` [A, De], or types (R-GCN)."""

from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import nn

from distgnn import ops
from distgnn.nn.conv.gat_conv import EdgeGATConv
from distgnn.nn.conv.gin_conv import GINEConv
from distgnn.nn.conv.rel_graph_conv import RelGraphConv
from distgnn.nn.models.stacks import GAT, Stack
from distgnn.ops.function import GraphView, opaque


class EncodedGINE(nn.Module):
    """GINEConv whose edge features are first brought to the width of the rows by a linear layer of its own.

    Shape: [O, in_feats] and edge features [A, De] to [O, out_feats].
    """

    def __init__(self, in_feats: int, out_feats: int, num_edge_feats: int):
        super().__init__()
        self.encoder: nn.Linear = nn.Linear(num_edge_feats, in_feats)
        func = nn.Sequential(nn.Linear(in_feats, out_feats), nn.ReLU(), nn.Linear(out_feats, out_feats))
        self.conv: GINEConv = GINEConv(func, learn_eps=True)

    @opaque
    def forward(self, graph: GraphView, rows: torch.Tensor, edge_feat: torch.Tensor) -> torch.Tensor:
        return self.conv(graph, rows, self.encoder(edge_feat))


class OfEdgeFeats(Stack):
    """Base: a stack of a graph whose arcs have De features."""

    def __init__(self, *sizes: int, num_edge_feats: int, **options: Any):
        self.num_edge_feats = num_edge_feats
        super().__init__(*sizes, **options)

    def graph_sizes(self) -> dict[str, int]:
        return {"num_edge_feats": self.num_edge_feats}

    def of_arcs(self, graph: GraphView) -> dict[str, Any]:
        return {"edge_feat": graph.edata["feat"]}


class GINE(OfEdgeFeats):
    """A stack of GINEConv, each with a linear encoder of edge features, a learned eps and two linear layers.

    Args: as `Stack`, without weighted; num_edge_feats: De.

    Example:
        >>> model = dg.nn.GINE(graph.num_feats, 8, graph.num_classes, num_edge_feats=3)
        >>> model(graph, graph.feats).shape
        torch.Size([60, 4])
    """

    config_name = "gine"

    def make_conv(self, in_feats: int, out_feats: int, last: bool) -> nn.Module:
        return EncodedGINE(in_feats, out_feats, self.num_edge_feats)


class EdgeGAT(OfEdgeFeats, GAT):
    """A stack of EdgeGATConv without its residual; heads stand side by side and are averaged in the last layer.

    Args: as `GAT`, without weighted; num_edge_feats: De.

    Example:
        >>> model = dg.nn.EdgeGAT(graph.num_feats, 8, graph.num_classes, num_edge_feats=3)
        >>> model(graph, graph.feats).shape
        torch.Size([60, 4])
    """

    config_name = "edgegat"

    def make_conv(self, in_feats: int, out_feats: int, last: bool) -> nn.Module:
        width = out_feats if last else out_feats // self.num_heads
        options = {"attn_drop": self.attn_drop, "residual": False, "allow_zero_in_degree": True}
        return EdgeGATConv(in_feats, self.num_edge_feats, width, self.num_heads, **options)


COLUMN = "relation_norm"


def relation_norm(graph: GraphView) -> torch.Tensor:
    """One over the number of in-arcs of the same relation at the same target, in the whole graph: [A, 1]. Kept.

    Collective: the first time.

    Notes: kept in `graph.edata`; relations are counted one after the other, so it takes a few numbers per arc.

    Source: Schlichtkrull et al., ESWC'18, equation 2.
    """
    if COLUMN not in graph.edata:
        relations = graph.edata["etype"]
        norm = torch.ones(len(relations), 1, dtype=graph.dtype)
        for relation in range(graph.num_relations):
            here = relations == relation
            counts = ops.to_arcs(graph, ops.from_arcs(graph, here[:, None].to(graph.dtype)), "target")
            norm[here] = 1 / counts[here]
        graph.edata[COLUMN] = norm
    return graph.edata[COLUMN]


class TypedInput(nn.Module):
    """y[v] = W_t x[v] + b_t, with t the type of v; a type without features (rows of zeros) has its bias alone.

    Args: in_feats, out_feats: widths; num_types: vertex types.

    Shape: [O, in_feats] and types int64 [O] (None: all 0) to [O, out_feats].

    Example:
        >>> layer = dg.nn.TypedInput(graph.num_feats, 4, num_types=2)
        >>> layer(graph.feats, graph.node_types).shape
        torch.Size([60, 4])
    """

    def __init__(self, in_feats: int, out_feats: int, num_types: int):
        super().__init__()
        self.out_feats = out_feats
        layers = [nn.Linear(in_feats, out_feats) for _ in range(num_types)]
        for layer in layers:
            nn.init.normal_(layer.bias)  # all that tells vertices without features apart
        self.types: nn.ModuleList = nn.ModuleList(layers)

    @opaque
    def forward(self, rows: torch.Tensor, types: torch.Tensor | None) -> torch.Tensor:
        if types is None or len(self.types) == 1:
            return self.types[0](rows)
        out = rows.new_zeros(len(rows), self.out_feats)
        for number, layer in enumerate(self.types):
            chosen = torch.nonzero(types == number).view(-1)
            out = out.index_copy(0, chosen, layer(rows[chosen]))
        return out


class RGCN(Stack):
    """A linear layer per vertex type and ReLU; then a stack of RelGraphConv, each relation averaged on its own.

    Args: as `Stack`, without weighted; num_relations: of `graph.edata["etype"]`; num_node_types: of
        `graph.ndata["ntype"]`, 0 or 1 where vertices have no types; num_bases: share weights between relations
        (0: a matrix for each).

    Source: Schlichtkrull et al., ESWC'18.

    Example:
        >>> model = dg.nn.RGCN(graph.num_feats, 8, graph.num_classes, num_relations=2)
        >>> model(graph, graph.feats).shape
        torch.Size([60, 4])
    """

    num_relations: int
    num_bases: int
    sizes: tuple[int, int, int]

    config_name = "rgcn"

    def __init__(
        self,
        in_feats: int,
        hidden_feats: int,
        *sizes: int,
        num_relations: int,
        num_node_types: int = 0,
        num_bases: int = 0,
        **options: Any,
    ):
        self.num_relations, self.num_bases = num_relations, num_bases
        super().__init__(hidden_feats, hidden_feats, *sizes, **options)
        self._arcs_of: WeakKeyDictionary = WeakKeyDictionary()  # graph -> its arcs by relation, made once
        self.inputs: TypedInput = TypedInput(in_feats, hidden_feats, max(num_node_types, 1))
        self.sizes = (in_feats, *self.sizes[1:])

    def own_settings(self) -> dict[str, Any]:
        return super().own_settings() | {"num_bases": self.num_bases}

    def graph_sizes(self) -> dict[str, int]:
        return {"num_relations": self.num_relations, "num_node_types": len(self.inputs.types)}

    def make_conv(self, in_feats: int, out_feats: int, last: bool) -> nn.Module:
        bases: dict[str, Any] = {"regularizer": "basis", "num_bases": self.num_bases} if self.num_bases else {}
        return RelGraphConv(in_feats, out_feats, self.num_relations, **bases)

    def of_arcs(self, graph: GraphView) -> dict[str, Any]:
        if graph not in self._arcs_of:
            norm = relation_norm(graph)
            self._arcs_of[graph] = ops.RelationArcs(graph, graph.edata["etype"], self.num_relations, norm)
        return {"etypes": self._arcs_of[graph]}

    @opaque
    def forward(self, graph: GraphView, feats: torch.Tensor) -> torch.Tensor:
        return super().forward(graph, torch.relu(self.inputs(feats, graph.node_types)))
