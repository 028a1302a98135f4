"""Which rows a rank has: rows of all ranks beside results of all rows, and ranks without rows."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from row_scenes import CLASSES, D, N, run, scenes

from distgnn.rows import RowTensor, WholeTensor


@pytest.mark.mpi(1, 3)
def test_results_of_all_rows_are_told_apart(comm):
    _, rows = scenes(comm)
    x = rows.x.detach().clone().requires_grad_()
    assert isinstance(x.relu(), RowTensor) and isinstance(x.mean(0), WholeTensor)
    assert tuple(x.shape) == (N, D) and tuple(x[rows.m].shape) == (20, D) and len(x.to_local()) == len(x.inner)
    assert "of 41 vertices here" in repr(x)


@pytest.mark.mpi(3)
def test_ranks_without_rows(comm):
    """A mask that one rank's rows are none of: losses, norms, statistics and ids."""
    plain, rows = scenes(comm)
    place = int(np.argmin(rows.x.row_space.places)) if comm.rank == 0 else None
    only = comm.bcast(int(rows.x.row_space.places[place]) if comm.rank == 0 else None)
    few = torch.zeros(N, dtype=torch.bool)
    few[only] = True
    for function in (
        lambda s, x: F.cross_entropy(x[few][:, :CLASSES], s.y[few]),
        lambda s, x: x[few].mean(0),
        lambda s, x: x[few].max(0).values,
        lambda s, x: x[few].softmax(0),
        lambda s, x: x[torch.tensor([only])],
        lambda s, x: s.lin(x[few]),
        lambda s, x: s.bn(torch.cat([x[few], x[few] * 2])),
    ):
        expected, found = run(plain, function), run(rows, function)
        for name, value in expected.items():
            torch.testing.assert_close(found[name], value, rtol=1e-10, atol=1e-10)
