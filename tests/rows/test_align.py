"""Rows beside rows, and beside ordinary tensors that every rank has as a whole: value and every gradient."""

import numpy as np
import pytest
import torch
from row_scenes import CLASS_WEIGHT, PERM, D, N, T, same_on_rows


@pytest.mark.mpi(1, 3)
@pytest.mark.filterwarnings("ignore:__array_wrap__")  # torch's own, beside NumPy
def test_value_and_gradients(comm):
    functions = [
        lambda s, x: torch.maximum(x, T),
        lambda s, x: torch.complex(x, x * 2).abs(),
        lambda s, x: x * (x.detach() + np.linspace(0, 1, D)),
        lambda s, x: torch.where(s.m[:, None], x, torch.zeros(1, dtype=torch.float64)),
        lambda s, x: x[s.m] * T[:20],
        lambda s, x: T[s.m] * x[s.m],
        lambda s, x: x[PERM] - x,
        lambda s, x: CLASS_WEIGHT[s.y] * x[:, 0],
        lambda s, x: torch.zeros(N, D, dtype=torch.float64).add_(x.detach()).mul_(x.detach()[:, :1]),
    ]
    same_on_rows(comm, functions)
