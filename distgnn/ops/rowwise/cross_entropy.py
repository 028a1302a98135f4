"""Summed cross entropy of some rows as a differentiable function: one pass over the logits each way, no copy of them.

    loss = sum over chosen rows of log(sum_c exp(x[c])) - sum_c q[c] x[c]        d loss / d x[c] = softmax(x)[c] - q[c]

Legend: O rows, C classes, q[c] = (1 - s) [c = label] + s / C with label smoothing s.
"""

from typing import Any

import torch

from distgnn import kernels
from distgnn.ops.aggregation.halo import as_array
from distgnn.ops.function import Function, operator


@operator
def summed_cross_entropy(
    graph: Any, logits: torch.Tensor, labels: torch.Tensor, rows: torch.Tensor, label_smoothing: float = 0.0
) -> torch.Tensor:
    """The sum over `rows` (bool [O]) of the cross entropy of logits [O, C] with labels int64 [O]: a scalar.

    Logits narrower than float32 are widened first. `label_smoothing`: as in torch's cross entropy.
    """
    logits = logits if logits.dtype == torch.float64 else logits.float()
    return _CrossEntropy.apply(logits, labels, rows, label_smoothing, graph)


class _CrossEntropy(Function):
    @staticmethod
    def forward(ctx: Any, logits: Any, labels: Any, rows: Any, smoothing: float, graph: Any) -> Any:
        ctx.graph, ctx.smoothing = graph, smoothing
        ctx.save_for_backward(logits, labels, rows)
        given = as_array(logits), as_array(labels), as_array(rows)
        total, ctx.state = kernels.cross_entropy(*given, smoothing)
        return logits.new_tensor(total)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        logits, labels, rows = ctx.saved_tensors
        out = ctx.graph.buffers.empty(*logits.shape, logits.dtype)
        given = as_array(logits), as_array(labels), as_array(rows), ctx.state
        kernels.cross_entropy_backward(*given, grad.item(), smoothing=ctx.smoothing, out=as_array(out))
        return out, None, None, None, None
