"""Other shapes of rows, rows one after the other and side by side: value and every gradient of whole tensors."""

import pytest
import torch
from row_scenes import IDS, PAIRS, T, same_on_rows


@pytest.mark.mpi(1, 3)
def test_value_and_gradients(comm):
    functions = [
        lambda s, x: x[..., None],
        lambda s, x: torch.cat([x[PAIRS[0]], T[:5]]),
        lambda s, x: torch.stack([x, T], -1),
        lambda s, x: torch.stack(list(x[IDS])) * torch.stack([x[3], *x[s.m][:5]]),
    ]
    same_on_rows(comm, functions)
