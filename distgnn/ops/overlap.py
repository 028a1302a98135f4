"""Work of a layer that needs no message, in pieces: an aggregation does it while its messages travel, and calls MPI
between the pieces.

Of z = x Ws + (A x) Wn the first product needs no remote data, nor do x' g and g Ws' in the backward pass.
"""

from collections.abc import Callable, Sequence
from functools import partial

import torch

from distgnn.ops.dense.products import sum_of_products
from distgnn.ops.protocol import GraphView

NUM_PIECES = 8
LEAST_ROWS = 1 << 10  # of a piece: packing the weight costs once per piece

Work = Sequence[Callable[[], object]]


def product_pieces(graph: GraphView, rows: torch.Tensor, weight: torch.Tensor, out: torch.Tensor) -> Work:
    """Pieces of work that together write rows [O, A] times weight [A, B] to `out` [O, B]."""
    weight = weight.to(rows.dtype).contiguous()
    step = max(-(-len(rows) // NUM_PIECES), LEAST_ROWS)
    pieces = [slice(first, first + step) for first in range(0, len(rows), step)]
    return [partial(sum_of_products, graph, [(rows[piece], weight)], out[piece]) for piece in pieces]
