"""Scores of pairs of vertices: an encoder makes a row of each vertex, a decoder a score of two rows.

Legend: O owned rows, B borrowed rows, D width of rows, M pairs, C classes.

| decoder | score of rows a, b |
|---|---|
| dot | sum of a · b |
| mlp | W2 relu(W1 (a · b) + c1) + c2, the Hadamard product |
| concat | W2 relu(W1 [a, b] + c1) + c2, which knows the direction |
"""

from typing import Any

import torch
from torch import nn

from distgnn import ops
from distgnn.config import check_choice
from distgnn.config.task import DECODERS
from distgnn.ops.csr_rows import blocks
from distgnn.ops.function import Function, GraphView, opaque

BLOCK_PAIRS = 1 << 15


class PairDecoder(nn.Module):
    """One of the decoders in the table above.

    Args:
        kind: "dot", "mlp" or "concat".
        in_feats: width D of rows, and of the hidden layer.
        num_outputs: C scores for each pair; None: one, without a dimension of its own.

    Shapes: rows of sources and of targets [M, D] -> [M] or [M, C].

    Example:
        >>> decoder = dg.nn.PairDecoder("dot", 8)
        >>> decoder(torch.ones(5, 8), torch.ones(5, 8))
        tensor([8., 8., 8., 8., 8.])
    """

    kind: str
    squeeze: bool

    def __init__(self, kind: str, in_feats: int, num_outputs: int | None = None):
        super().__init__()
        check_choice("decoder", kind, DECODERS)
        if kind == "dot" and num_outputs is not None:
            raise ValueError("decoder dot gives one number for each pair, not several: choose mlp or concat")
        self.kind, self.squeeze = kind, num_outputs is None
        if kind != "dot":
            width = in_feats * (2 if kind == "concat" else 1)
            self.layers: nn.Sequential = nn.Sequential(
                nn.Linear(width, in_feats), nn.ReLU(), nn.Linear(in_feats, num_outputs or 1)
            )

    @opaque
    def forward(self, sources: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        if self.kind == "dot":
            return (sources * targets).sum(1)
        rows = torch.cat([sources, targets], 1) if self.kind == "concat" else sources * targets
        scores = self.layers(rows)
        return scores[:, 0] if self.squeeze else scores


class PairPredictor(nn.Module):
    """An encoder and a decoder: the model of tasks on edges and links.

    `model(graph, feats)` gives the encoder's rows [O, D], `model.scores(lookup, rows)` the scores of pairs.

    Args:
        encoder: a module of (graph, feats), as any model of vertices.
        decoder: a module of (rows of sources, rows of targets), which works pair by pair.

    Example:
        >>> graph = dg.load("links")
        >>> encoder = dg.nn.GraphSAGE(graph.num_feats, 8, 8, num_layers=2)
        >>> model = dg.nn.PairPredictor(encoder, dg.nn.PairDecoder("dot", 8))
        >>> dg.Trainer(model, graph, dg.TrainConfig(task="link", epochs=2, log=None)).fit().summary["metric"]
        'mrr'
    """

    encoder: nn.Module
    decoder: nn.Module

    def __init__(self, encoder: nn.Module, decoder: nn.Module):
        super().__init__()
        self.encoder, self.decoder = encoder, decoder

    @opaque
    def forward(self, graph: GraphView, feats: torch.Tensor) -> torch.Tensor:
        rows: torch.Tensor = self.encoder(graph, feats)
        return rows

    def scores(self, lookup: ops.RowLookup, rows: torch.Tensor) -> torch.Tensor:
        """Scores of the pairs of a `RowLookup(graph, pairs [M, 2])` from the encoder's rows. Collective: yes."""
        return pair_scores(self.decoder, lookup.table(rows), lookup.places)


def pair_scores(decoder: nn.Module, table: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
    """`decoder(table[places[:, 0]], table[places[:, 1]])`, a block of pairs at a time, forward and backward.

    Notes: rows of pairs are never all in memory: the backward pass makes a block's scores again. Deterministic.
    """
    if not torch.is_grad_enabled():
        return _forward(decoder, table, places)
    return _Scores.apply(table, places, decoder, *[one for one in decoder.parameters() if one.requires_grad])


def _forward(decoder: nn.Module, table: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
    # One block at least: a rank without pairs has scores of the right shape.
    ends = (places[block] for block in blocks(max(len(places), 1), BLOCK_PAIRS))
    return torch.cat([decoder(table[pairs[:, 0]], table[pairs[:, 1]]) for pairs in ends])


class _Scores(Function):
    @staticmethod
    def forward(ctx: Any, table: Any, places: Any, decoder: nn.Module, *parameters: Any) -> Any:
        ctx.decoder, ctx.parameters = decoder, parameters
        ctx.save_for_backward(table, places)
        return _forward(decoder, table, places)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> tuple[Any, ...]:
        table, places = ctx.saved_tensors
        of_table = torch.zeros_like(table)
        sums = [torch.zeros_like(parameter) for parameter in ctx.parameters]
        for block in blocks(len(places), BLOCK_PAIRS):
            pairs = places[block]
            ends = [table[pairs[:, end]].requires_grad_() for end in (0, 1)]
            with torch.enable_grad():
                scores = ctx.decoder(*ends)
            found = torch.autograd.grad(scores, [*ends, *ctx.parameters], grad[block])
            for end in (0, 1):
                of_table.index_add_(0, pairs[:, end], found[end])
            for total, part in zip(sums, found[2:], strict=True):
                total += part
        return of_table, None, None, *sums
