"""Summed cross entropy of some rows as a differentiable function: one pass over the logits each way, no copy of them.

    loss = sum over chosen rows of log(sum_c exp(x[c])) - x[label]        d loss / d x[c] = softmax(x)[c] - [c = label]

Legend: O rows, C classes.
"""

from typing import Any

import torch

from distgnn import kernels
from distgnn.ops.aggregation.halo import as_array
from distgnn.ops.entry import operator
from distgnn.ops.function import Function


@operator
def summed_cross_entropy(graph: Any, logits: torch.Tensor, labels: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    """The sum over `rows` (bool [O]) of the cross entropy of logits [O, C] with labels int64 [O]: a scalar.

    Logits narrower than float32 are widened first.
    """
    logits = logits if logits.dtype == torch.float64 else logits.float()
    return _CrossEntropy.apply(logits, labels, rows, graph)


class _CrossEntropy(Function):
    @staticmethod
    def forward(ctx: Any, logits: Any, labels: Any, rows: Any, graph: Any) -> Any:
        ctx.graph = graph
        ctx.save_for_backward(logits, labels, rows)
        total, ctx.state = kernels.cross_entropy(*map(as_array, (logits, labels, rows)))
        return logits.new_tensor(total)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        logits, labels, rows = ctx.saved_tensors
        out = ctx.graph.buffers.empty(*logits.shape, logits.dtype)
        given = as_array(logits), as_array(labels), as_array(rows), ctx.state
        kernels.cross_entropy_backward(*given, grad.item(), out=as_array(out))
        return out, None, None, None
