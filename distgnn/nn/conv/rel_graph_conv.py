"""Relational graph convolution (R-GCN) over one vertex set, DGL's arguments and parameter names.

Legend: O owned rows, A local arcs, R relations, B bases.
"""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from distgnn import ops
from distgnn.config import check_choice
from distgnn.nn.dropout import Dropout
from distgnn.ops.function import GraphView, opaque

REGULARIZERS = ("none", "basis", "bdd")


class TypedLinear(nn.Module):
    """y[i] = x[i] W[type of i]; "basis": W[t] = sum over b of coeff[t, b] W_b; "bdd": W[t] is block diagonal.

    Args: in_size, out_size: widths; num_types; regularizer: None, "basis" or "bdd"; num_bases: bases, or blocks.

    Source: parameter names as `dgl.nn.TypedLinear` 1.1.3.

    Example:
        >>> layer = dg.nn.TypedLinear(3, 2, num_types=2)
        >>> layer(torch.ones(4, 3), torch.tensor([0, 1, 0, 1])).shape
        torch.Size([4, 2])
    """

    in_size: int
    out_size: int
    num_types: int
    regularizer: str | None
    num_bases: int

    def __init__(
        self, in_size: int, out_size: int, num_types: int, regularizer: str | None = None, num_bases: int | None = None
    ):
        super().__init__()
        check_choice("regularizer", regularizer or "none", REGULARIZERS)
        self.in_size, self.out_size, self.num_types, self.regularizer = in_size, out_size, num_types, regularizer
        if regularizer is not None and not num_bases:
            raise ValueError(f"regularizer {regularizer!r} needs num_bases")
        self.num_bases = num_bases = num_bases or 0
        if regularizer == "bdd":
            if in_size % num_bases or out_size % num_bases:
                raise ValueError(f"widths {in_size} and {out_size} must be multiples of num_bases {num_bases}")
            self.W = nn.Parameter(torch.empty(num_types, in_size * out_size // num_bases))
        else:
            self.W = nn.Parameter(torch.empty(num_bases if regularizer else num_types, in_size, out_size))
        if regularizer == "basis":
            self.coeff: nn.Parameter = nn.Parameter(torch.empty(num_types, num_bases))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Uniform in ± 1 / sqrt(rows of a block), as DGL draws them."""
        rows = self.in_size // self.num_bases if self.regularizer == "bdd" else self.in_size
        nn.init.uniform_(self.W, -1 / math.sqrt(rows), 1 / math.sqrt(rows))
        if self.regularizer == "basis":
            nn.init.xavier_uniform_(self.coeff, gain=nn.init.calculate_gain("relu"))

    def weights(self) -> torch.Tensor:
        """One matrix per type and block, [R, blocks, rows, columns]."""
        if self.regularizer == "basis":
            return torch.einsum("rb,bio->rio", self.coeff, self.W)[:, None]
        blocks = self.num_bases if self.regularizer == "bdd" else 1
        return self.W.view(self.num_types, blocks, self.in_size // blocks, self.out_size // blocks)

    def matrices(self) -> torch.Tensor:
        """One matrix per type, [R, in_size, out_size]."""
        weights = self.weights()
        if weights.shape[1] == 1:
            return weights[:, 0]
        return torch.stack([torch.block_diag(*blocks) for blocks in weights])

    @opaque
    def forward(self, rows: torch.Tensor, types: torch.Tensor) -> torch.Tensor:
        """[A, in_size] and types int64 [A] to [A, out_size]."""
        order = torch.argsort(types, stable=True)
        counts = torch.bincount(types, minlength=self.num_types).tolist()
        return self.of_sorted(rows[order], counts)[torch.argsort(order)]

    def of_sorted(self, rows: torch.Tensor, counts: list[int]) -> torch.Tensor:
        """Rows that stand in the order of their types, `counts` of each."""
        weights = self.weights()
        blocks = weights.shape[1]
        by_type = rows.view(len(rows), blocks, self.in_size // blocks).split(counts)
        pieces = [torch.einsum("nbi,bio->nbo", x, w) for x, w in zip(by_type, weights, strict=True)]
        return torch.cat(pieces).reshape(len(rows), self.out_size)


class RelGraphConv(nn.Module):
    """y[v] = sum over arcs (u -> v) of norm[arc] x[u] W[relation of arc], plus x[v] W_loop and a bias.

    Args:
        in_feat, out_feat, num_rels: widths and number of relations.
        regularizer, num_bases: None, "basis" or "bdd" of `TypedLinear`.
        bias, self_loop, layer_norm: have a bias, a weight for the vertex itself, a norm of the aggregate.
        activation, dropout: applied last, in this order.

    Shape: [O, in_feat] and relations int64 [A] to [O, out_feat].

    Notes:
        Relations are edge types over one vertex set: `graph.edata["etype"]`. With `ops.RelationArcs` in place of
        them, made once, sources are summed per relation and target before they are transformed: in_feat + out_feat
        numbers per such pair; otherwise, as in DGL, per arc.

    Source: Schlichtkrull et al., ESWC'18; parameter names as `dgl.nn.RelGraphConv` 1.1.3.

    Example:
        >>> layer = dg.nn.RelGraphConv(graph.num_feats, 4, num_rels=2)
        >>> layer(graph, graph.feats, graph.edata["etype"]).shape
        torch.Size([60, 4])
    """

    def __init__(
        self,
        in_feat: int,
        out_feat: int,
        num_rels: int,
        regularizer: str | None = None,
        num_bases: int | None = None,
        bias: bool = True,
        activation: Callable[..., Any] | None = None,
        self_loop: bool = True,
        dropout: float = 0.0,
        layer_norm: bool = False,
    ):
        super().__init__()
        if regularizer is not None and num_bases is None:
            num_bases = num_rels
        self.linear_r: TypedLinear = TypedLinear(in_feat, out_feat, num_rels, regularizer, num_bases)
        self.activation = activation
        self.h_bias: nn.Parameter | None = nn.Parameter(torch.zeros(out_feat)) if bias else None
        self.layer_norm_weight: nn.LayerNorm | None = nn.LayerNorm(out_feat) if layer_norm else None
        self.loop_weight: nn.Parameter | None = nn.Parameter(torch.empty(in_feat, out_feat)) if self_loop else None
        if self.loop_weight is not None:
            nn.init.xavier_uniform_(self.loop_weight, gain=nn.init.calculate_gain("relu"))
        self.dropout: Dropout = Dropout(dropout)

    @opaque
    def forward(
        self,
        graph: GraphView,
        feat: torch.Tensor,
        etypes: torch.Tensor | ops.RelationArcs,
        norm: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """`norm` [A] multiplies messages; with RelationArcs it is in them."""
        if isinstance(etypes, ops.RelationArcs):
            out = etypes.convolve(feat, self.linear_r.matrices().unbind(0))
        else:
            rows = self.linear_r(ops.to_arcs(graph, feat, "source"), etypes)
            out = ops.from_arcs(graph, rows if norm is None else rows * norm.reshape(-1, 1))
        out = out if self.layer_norm_weight is None else self.layer_norm_weight(out)
        out = out if self.h_bias is None else out + self.h_bias
        out = out if self.loop_weight is None else out + feat @ self.loop_weight
        out = out if self.activation is None else self.activation(out)
        return self.dropout(out, graph)
