"""Damped inverses of factors, spread over ranks: each is made by one rank and sent to the others.

    (A + shift I)^-1        A [I, I], or its diagonal [I], as means over rows

All ranks then have the same bits, whatever their processors, and a rank inverts 1 / P of the matrices.

Source: Pauloski et al., Convolutional neural network training with distributed K-FAC, SC'20.
"""

from typing import Any

import numpy as np
import torch

from distgnn.comm import agree
from distgnn.errors import RunError


def damped_inverses(comm: Any, factors: list[torch.Tensor], shifts: list[float]) -> list[torch.Tensor]:
    """The inverse of each factor plus shift times the identity, in the factor's dtype; made in float64.

    Collective: yes.

    Raises: RunError on every rank where a factor has no inverse: it is not finite.
    """
    makers = spread([len(factor) if factor.dim() == 2 else 0 for factor in factors], comm.size)
    found = [torch.empty_like(factor) for factor in factors]
    error = None
    for factor, shift, maker, out in zip(factors, shifts, makers, found, strict=True):
        if factor.dim() == 1:
            out.copy_(1 / (factor.double() + shift))
        elif maker == comm.rank and error is None:
            error = _invert(factor, shift, out)
    agree(comm, error)
    for out, factor, maker in zip(found, factors, makers, strict=True):
        if comm.size > 1 and factor.dim() == 2:
            comm.Bcast(out.numpy(), root=maker)
    return found


def spread(widths: list[int], num_ranks: int) -> list[int]:
    """Which rank inverts which matrix: the widest first, each to the rank with the least to do."""
    work, makers = np.zeros(num_ranks), [0] * len(widths)
    for place in sorted(range(len(widths)), key=lambda place: -widths[place]):
        makers[place] = int(work.argmin())
        work[makers[place]] += float(widths[place]) ** 3
    return makers


def _invert(factor: torch.Tensor, shift: float, out: torch.Tensor) -> RunError | None:
    damped = factor.to(torch.float64, copy=True)
    damped.diagonal().add_(shift)
    root, failed = torch.linalg.cholesky_ex(damped)
    if failed or not bool(torch.isfinite(root).all()):
        return RunError(
            "kfac: the second moments of a layer's rows have no inverse, since rows or gradients are too large. Lower "
            "--lr, scale the features, or choose another --optimizer"
        )
    out.copy_(torch.cholesky_inverse(root))
    return None
