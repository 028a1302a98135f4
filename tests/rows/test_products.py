"""Products of rows with ordinary matrices, dense and sparse, and of rows with rows: value and every gradient."""

import pytest
import torch
import torch.nn.functional as F
from row_scenes import CLASSES, N, T, W, same_on_rows

ENDS, KINDS = torch.randint(0, N, (2, 90), generator=torch.Generator().manual_seed(4)), torch.arange(90) % CLASSES
SPARSE = torch.sparse_coo_tensor(ENDS, KINDS.double() - 1.5, (N, N), check_invariants=True)  # some entries twice


@pytest.mark.mpi(1, 3)
@pytest.mark.filterwarnings("ignore:Sparse CSR")  # torch's own, at its first CSR matrix
def test_value_and_gradients(comm):
    functions = [
        lambda s, x: x.T @ T,
        lambda s, x: T.t() @ x,
        lambda s, x: s.lin(x),
        lambda s, x: torch.addmm(W[0], x, W),
        lambda s, x: x.view(-1, 2, 4) @ W[:4, :2],
        lambda s, x: torch.matmul(x, W @ torch.sigmoid(x.mean(0)[:5])),
        lambda s, x: torch.mm(mat2=W, input=x),
        lambda s, x: SPARSE @ (SPARSE @ x),
        lambda s, x: torch.sparse.mm(SPARSE.to_sparse_csr(), x),
        lambda s, x: torch.spmm(SPARSE.t(), s.lin(x)),
        lambda s, x: SPARSE.matmul(x[:, 0]),
        lambda s, x: torch.sparse.addmm(x, SPARSE, x, beta=0.5, alpha=2.0),
        lambda s, x: torch.sparse_coo_tensor(ENDS, s.lin.bias[KINDS], (N, N), check_invariants=True) @ x,
        lambda s, x: torch.cdist(x, T[:3]),
        lambda s, x: F.one_hot(s.y).double() @ W[:CLASSES],
    ]
    same_on_rows(comm, functions)
