"""Functions of some rows give the bits that they give among all rows."""

import torch

from distgnn.predicting.row_by_row import RowByRow

WIDTH = 8


def test_functions_of_some_rows():
    torch.manual_seed(0)
    names = "sigmoid softplus elu gelu silu mish selu celu logsigmoid".split()
    functions = [getattr(torch.nn.functional, name) for name in names]
    functions += [lambda rows: rows.abs().pow(0.37), torch.exp2, lambda rows: rows.clone().sigmoid_()]
    weight = torch.randn(5, WIDTH)
    functions += [lambda rows: torch.nn.functional.linear(rows, weight.to(rows.dtype))]
    functions += [lambda rows: torch.nn.functional.elu(rows[:, 1:])]
    with torch.no_grad(), RowByRow():
        for dtype in (torch.float32, torch.float64):
            rows = torch.randn(10_001, WIDTH, dtype=dtype)
            for function in functions:
                every = function(rows)
                for first, last in ((0, 1), (3, 12), (100, 9_998), (7, 4_700)):
                    assert torch.equal(function(rows[first:last].clone()), every[first:last])
