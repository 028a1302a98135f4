"""One linear layer per vertex type: where types have features of different kinds, or none."""

import torch
from torch import nn

from distgnn.ops.entry import opaque


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
