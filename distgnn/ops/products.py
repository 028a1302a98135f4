"""Matrix products of rows and weights, into buffers that are there already.

Legend: O rows, A columns in, B columns out. Weights and their gradients are float32 (or float64) always; bfloat16 rows
are multiplied as bfloat16, with weights rounded for the product. Weight gradients are sums over all rows: of bfloat16
rows they are taken block by block and added in float32.
"""

import torch

from distgnn.ops.sparse_rows import SparseRows

OVER_ROWS = 1 << 13  # rows of a block that is written over what it is made of: it stays in the caches
BLOCK_ROWS = 1 << 15  # rows whose bfloat16 products are summed inside one product


def product(graph, rows: torch.Tensor, weight: torch.Tensor, add_to: torch.Tensor | None = None) -> torch.Tensor:
    """rows [O, A] times weight [A, B], into a buffer of the graph, or added to `add_to` [O, B] in place."""
    weight = weight.to(rows.dtype)
    if isinstance(rows, SparseRows):
        out = graph.buffers.empty(len(rows), weight.shape[1], rows.dtype) if add_to is None else add_to
        return rows.times(weight, out, add=add_to is not None)
    if add_to is not None:
        return add_to.addmm_(rows, weight)
    return torch.mm(rows, weight, out=graph.buffers.empty(len(rows), weight.shape[1], rows.dtype))


def sum_of_products(graph, pairs: list[tuple], over: torch.Tensor | None = None) -> torch.Tensor:
    """The sum over (rows [O, A], weight [A, B]) of their products, [O, B].

    Args: over: one of the rows, with B = A columns, that nobody needs any more: the sum is written over it, block by
        block, and no buffer is used.
    """
    if over is None:
        out = None
        for rows, weight in pairs:
            out = product(graph, rows, weight, add_to=out)
        return out
    pairs = [(rows, weight.to(rows.dtype)) for rows, weight in pairs]
    room = over.new_empty(min(len(over), OVER_ROWS), over.shape[1])
    for first in range(0, len(over), OVER_ROWS):
        block = slice(first, first + OVER_ROWS)
        out = room[: len(over[block])]
        for number, (rows, weight) in enumerate(pairs):
            torch.addmm(out, rows[block], weight, beta=int(number > 0), out=out)
        over[block].copy_(out)
    return over


def weight_gradient(rows: torch.Tensor, grads: torch.Tensor) -> torch.Tensor:
    """Transposed rows [O, A] times gradients [O, B] of the same dtype: [A, B], float32 for bfloat16."""
    if isinstance(rows, SparseRows):
        return rows.turned_times(grads)
    if rows.dtype != torch.bfloat16:
        return rows.T @ grads
    total = torch.zeros(rows.shape[1], grads.shape[1])
    for first in range(0, len(rows), BLOCK_ROWS):
        block = slice(first, first + BLOCK_ROWS)
        total += rows[block].T @ grads[block]
    return total
