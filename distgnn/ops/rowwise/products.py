"""Matrix products of rows and weights, into buffers that are there already.

Legend: O rows, A columns in, B columns out. Weights and their gradients are float32 (or float64) always; bfloat16 rows
are multiplied as bfloat16, with weights rounded for the product. Weight gradients are sums over all rows: of bfloat16
rows they are taken block by block and added in float32. Products of float32 rows, and of bfloat16 rows where torch has
none that are quick, are `kernels.product`, unless torch's were found to be quicker for this graph on this machine
(`graph.tuning`): then bfloat16 rows are widened block by block. Both multiply the same numbers and sum in float32.
Others are torch's.

`PieceRows` are made piece by piece, where they are needed, from tensors that are there anyway. Weight gradients take
them in place of a tensor and are sums over pieces: `kernels.product`'s have the same bits. What lives how long is
decided in chain.py.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch

from distgnn import kernels
from distgnn.ops.aggregation.halo import as_array
from distgnn.ops.csr_rows import blocks
from distgnn.ops.function import GraphView
from distgnn.ops.rowwise.sparse_rows import SparseRows


@dataclass(eq=False)
class PieceRows:
    """Rows [O, D]: some of them by `rows[first:stop]`, in the memory of these alone, or all as `whole()`.

    Args: make: some rows. shape, dtype: of all.
    """

    make: Callable[[slice], torch.Tensor]
    shape: torch.Size
    dtype: torch.dtype

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice) -> torch.Tensor:
        return self.make(rows)

    def whole(self) -> torch.Tensor:
        return self[: len(self)]


def whole(rows: Any) -> Any:
    return rows.whole() if isinstance(rows, PieceRows) else rows


OVER_ROWS = 1 << 13  # rows of a block that is written over what it is made of: it stays in the caches
BLOCK_ROWS = 1 << 15  # rows whose bfloat16 products are summed inside one product that is rounded
NUM_PIECES = 8
LEAST_ROWS = 1 << 10  # of a piece: packing the weight costs once per piece

Work = Sequence[Callable[[], object]]  # of a layer, which needs no message


def has_own_products(graph: GraphView, rows: Any) -> bool:
    """Are rows multiplied by `kernels.product`, whose bits do not depend on the piece of rows?"""
    return graph.tuning.own_products == 1 and product_dtype(graph, rows.dtype) == torch.float32


def product_dtype(graph: GraphView, dtype: torch.dtype) -> torch.dtype:
    """What rows of this dtype are multiplied in."""
    return torch.float32 if dtype == torch.bfloat16 and graph.tuning.wide_products else dtype


def _widens(graph: GraphView, rows: Any) -> bool:
    return product_dtype(graph, rows.dtype) != rows.dtype


def _wide(graph: GraphView, rows: torch.Tensor) -> torch.Tensor:
    """What torch is to multiply in place of rows, or of weights."""
    return rows.to(product_dtype(graph, rows.dtype))


def product(graph: GraphView, rows: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """rows [O, A] times weight [A, B], into a buffer of the graph."""
    return sum_of_products(graph, [(rows, weight)])


def write_product(graph: GraphView, rows: torch.Tensor, weight: torch.Tensor, out: torch.Tensor) -> None:
    """Write rows [O, A] times weight [A, B] to `out` [O, B], which is none of the rows."""
    if has_own_products(graph, rows) or _widens(graph, rows):
        sum_of_products(graph, [(rows, weight)], over=out)
    else:
        torch.mm(rows, weight.to(rows.dtype), out=out)


def plain_product(graph: GraphView, rows: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Rows [..., A] times weight [A, B] by torch, with torch's gradient; `graph.factor_recorder` is told its rows.

    Example:
        >>> dg.ops.plain_product(graph, graph.feats, torch.ones(8, 4)).shape
        torch.Size([60, 4])
    """
    out = rows @ weight if isinstance(rows, SparseRows) else (_wide(graph, rows) @ _wide(graph, weight)).to(rows.dtype)
    recorder = graph.factor_recorder
    if recorder is not None and out.requires_grad:
        given = rows if isinstance(rows, SparseRows) else rows.detach().flatten(0, -2)
        fixed, constant = weight.detach(), not rows.requires_grad
        out.register_hook(lambda grad: recorder.add([(fixed, given, grad.detach().flatten(0, -2))], constant))
    return out


def product_pieces(graph: GraphView, rows: torch.Tensor, weight: torch.Tensor, out: torch.Tensor) -> Work:
    """Pieces of work that together write rows [O, A] times weight [A, B] to `out` [O, B].

    An aggregation does them while its messages travel, and calls MPI in between.
    """
    weight = weight.to(rows.dtype).contiguous()
    step = max(-(-len(rows) // NUM_PIECES), LEAST_ROWS)
    return [partial(_product_of_part, graph, rows, part, weight, out) for part in blocks(len(rows), step)]


def _product_of_part(graph: GraphView, rows: Any, part: slice, weight: torch.Tensor, out: torch.Tensor) -> None:
    sum_of_products(graph, [(rows[part], weight)], out[part])


def add_product(graph: GraphView, rows: torch.Tensor, weight: torch.Tensor, out: torch.Tensor) -> None:
    """Add rows [O, A] times weight [A, B] to `out` [O, B], which may be wider numbers than the rows."""
    if isinstance(rows, SparseRows):
        rows.times(weight.to(out.dtype), out, add=True)
        return
    weight = weight.to(rows.dtype)
    if has_own_products(graph, rows) and out.dtype == torch.float32:
        kernels.product(as_array(rows), as_array(_wide(graph, weight)), out=as_array(out), accumulate=True)
    elif rows.dtype == out.dtype and not _widens(graph, rows):
        out.addmm_(rows, weight)
    else:
        weight = _wide(graph, weight)
        for block in blocks(len(out), OVER_ROWS):
            out[block] += _wide(graph, rows[block]) @ weight


def sum_of_products(graph: GraphView, pairs: list[tuple[Any, ...]], over: torch.Tensor | None = None) -> torch.Tensor:
    """The sum over (rows [O, A], weight [A, B]), one or two pairs (one of sparse rows), of their products, [O, B].

    Args: over: where to write, [O, B], in place of a buffer; it may be one of the rows, with B = A columns, that nobody
        needs any more: it is written over block by block.
    """
    pairs = [(rows, weight.to(rows.dtype)) for rows, weight in pairs]
    rows, weight = pairs[0]
    out = graph.buffers.empty(len(rows), weight.shape[1], rows.dtype) if over is None else over
    if isinstance(rows, SparseRows):
        rows.times(weight, out)
    elif has_own_products(graph, rows):
        arrays = [as_array(array) for rows, weight in pairs for array in (rows, _wide(graph, weight))]
        kernels.product(*arrays, out=as_array(out))
    elif over is None and not _widens(graph, rows):
        torch.mm(rows, weight, out=out)
        for more in pairs[1:]:
            out.addmm_(*more)
    else:  # `out` may be one of the rows
        pairs = [(rows, _wide(graph, weight)) for rows, weight in pairs]
        room = pairs[0][1].new_empty(min(len(out), OVER_ROWS), out.shape[1])
        for block in blocks(len(out), OVER_ROWS):
            made = room[: len(out[block])]
            for number, (rows, weight) in enumerate(pairs):
                torch.addmm(made, _wide(graph, rows[block]), weight, beta=int(number > 0), out=made)
            out[block].copy_(made)
    return out


def weight_gradient(graph: GraphView, rows: Any, grads: torch.Tensor) -> torch.Tensor:
    """Transposed rows [O, A] times gradients [O, B] of the same dtype: [A, B], float32 for bfloat16."""
    return weight_gradients(graph, rows, [grads])[0]


def weight_gradients(graph: GraphView, rows: Any, all_grads: list[torch.Tensor]) -> list[torch.Tensor]:
    """The same with several gradients of one shape: rows that are to be made again are made once."""
    if isinstance(rows, PieceRows) and has_own_products(graph, rows):
        found = kernels.inner_products(partial(_array_of, rows), rows.shape[1], [as_array(one) for one in all_grads])
        return [torch.from_numpy(one) for one in found]
    return [_weight_gradient(graph, rows, grads) for grads in all_grads]


def _array_of(rows: PieceRows, first: int, stop: int) -> np.ndarray:
    return as_array(rows[first:stop])


def _weight_gradient(graph: GraphView, rows: Any, grads: torch.Tensor) -> torch.Tensor:
    if isinstance(rows, SparseRows):
        return rows.turned_times(grads)
    if has_own_products(graph, rows):
        return torch.from_numpy(kernels.inner_product(as_array(rows), as_array(grads)))
    if rows.dtype != torch.bfloat16 and not isinstance(rows, PieceRows):
        return rows.T @ grads
    total = torch.zeros(rows.shape[1], grads.shape[1], dtype=torch.promote_types(rows.dtype, torch.float32))
    size = OVER_ROWS if _widens(graph, rows) else BLOCK_ROWS
    for block in blocks(len(rows), size):
        total += turned_product(_wide(graph, rows[block]), _wide(graph, grads[block]))
    return total


def narrow_gradient(rows: Any, grads: torch.Tensor) -> torch.Tensor:
    """`weight_gradient` for a few columns of gradients [O, B], float32 for bfloat16 rows: [A, B]."""
    if isinstance(rows, SparseRows):
        return rows.turned_times(grads.to(rows.dtype))
    if isinstance(rows, PieceRows):
        return torch.from_numpy(kernels.narrow_products(partial(_array_of, rows), rows.shape[1], as_array(grads)))
    return torch.from_numpy(kernels.narrow_product(as_array(grads), as_array(rows))).T


def turned_product(rows: torch.Tensor, grads: torch.Tensor) -> torch.Tensor:
    """Transposed rows [O, A] times gradients [O, B] by torch: [A, B].

    Notes: torch copies what is transposed, so that is the narrower of the two: of 602 and 256 bfloat16 columns 76 ms
        in place of 115 (169,343 rows, 2 cores of a Zen 5), of 256 and 8 5.5 in place of 8.7, of equal ones the same.
    """
    if grads.shape[1] < rows.shape[1]:
        return (grads.T @ rows).T
    return rows.T @ grads
