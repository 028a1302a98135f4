"""A linear layer and what follows it, on a chain, against dense torch: rows and gradients."""

import pytest
from dense_layers import compare

from distgnn import ops
from distgnn.ops.rowwise.chain import enter, leave


@pytest.mark.mpi(1)
@pytest.mark.parametrize("widths", [(8, 8), (8, 4)], ids=["equal", "narrows"])
@pytest.mark.parametrize("norm", [False, True], ids=["bare", "norm"])
def test_against_dense_torch(comm, widths, norm):
    def run(graph, values, epilogue, parameters):
        rows = enter(graph, values["feats"])
        made = ops.linear(graph, rows, values["neigh"], values["bias"], epilogue=epilogue, norm=parameters)
        return leave(made, alone=True)

    compare(comm, run, lambda _, values: values["feats"] @ values["neigh"], widths, norm, constant=False)
