"""Summed cross entropy of some rows, a block of rows at a time: no copy of the logits is made.

    loss = sum over chosen rows of log(sum_c exp(x[c])) - x[label]        d loss / d x[c] = softmax(x)[c] - [c = label]

Legend: O rows, C classes.
"""

from typing import Any

import torch
from torch.autograd.function import once_differentiable

BLOCK_ROWS = 1 << 14


def summed_cross_entropy(graph: Any, logits: torch.Tensor, labels: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    """The sum over `rows` (bool [O]) of the cross entropy of logits [O, C] with labels int64 [O]: a scalar."""
    return _CrossEntropy.apply(logits, labels, rows, graph)


class _CrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, logits: Any, labels: Any, rows: Any, graph: Any) -> Any:
        ctx.graph = graph
        ctx.save_for_backward(logits, labels, rows)
        total = logits.new_zeros((), dtype=torch.float64)
        for block in _blocks(len(logits)):
            chosen = rows[block]
            truth = torch.where(chosen, labels[block], 0)[:, None]
            missed = torch.logsumexp(logits[block], 1) - logits[block].gather(1, truth)[:, 0]
            total += torch.where(chosen, missed, 0).sum(dtype=torch.float64)
        return total.to(logits.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Any) -> Any:
        logits, labels, rows = ctx.saved_tensors
        out = ctx.graph.buffers.empty(*logits.shape, logits.dtype)
        for block in _blocks(len(logits)):
            chosen = rows[block]
            truth = torch.where(chosen, labels[block], 0)[:, None]
            torch.softmax(logits[block], 1, out=out[block])
            out[block].scatter_add_(1, truth, out.new_full(truth.shape, -1.0))
            out[block] *= torch.where(chosen, grad, 0)[:, None]
        return out, None, None, None


def _blocks(num_rows: int) -> list[slice]:
    return [slice(first, first + BLOCK_ROWS) for first in range(0, num_rows, BLOCK_ROWS)]
