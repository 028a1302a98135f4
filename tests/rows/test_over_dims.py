"""Functions over a dimension, and counts of numbers, of rows of P ranks: value and every gradient of whole tensors."""

import pytest
import torch
import torch.nn.functional as F
from row_scenes import CLASS_WEIGHT, CLASSES, PERM, same_on_rows


@pytest.mark.mpi(1, 3)
def test_value_and_gradients(comm):
    functions = [
        lambda s, x: torch.linalg.norm(x),
        lambda s, x: torch.logsumexp(x, (0, 1)),
        lambda s, x: F.softmin(x, 0),
        lambda s, x: x.prod(1),
        lambda s, x: x.quantile(CLASS_WEIGHT, dim=1, keepdim=True),
        lambda s, x: torch.topk(x[:, 0], 3, largest=False).values,
        lambda s, x: x[s.m][x[s.m][:, 1].argsort(descending=True)[:4]],
        lambda s, x: x[:, 0].sort(stable=True)[0] * s.y.double()[x[:, 0].sort()[1]],
        lambda s, x: torch.bincount(s.y * CLASSES + s.y[PERM], minlength=CLASSES**2).view(CLASSES, CLASSES),
        lambda s, x: s.y.unique(return_counts=True)[1],
        lambda s, x: torch.allclose(x, x + 0),
    ]
    same_on_rows(comm, functions)
