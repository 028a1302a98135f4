"""The gradient of ReLU and dropout with its dot products, against numpy and the two kernels it stands for."""

import numpy as np
import pytest

from distgnn.kernels import activate_backward, relu_backward_dots
from distgnn.kernels.check import reference

from ..graphs import close, rows_of

P = 0.25


def _expected(grad, out, bias, heads):
    row = np.where(out > 0, grad / (1 - P), 0)
    z = np.where(out > 0, out * (1 - P) - bias, 0)
    return row, row.sum(axis=0), (row * z).reshape(len(row), heads, row.shape[1] // heads).sum(axis=2)


def _inputs(rows, width, dtype):
    grad, out = rows_of(rows, width, dtype), rows_of(rows, width, dtype, 1)
    return grad, np.maximum(out, 0), rows_of(1, width, dtype, 2)[0]


@pytest.mark.parametrize(
    "rows, heads, width, dtype",
    [
        (600, 4, 9, np.float32),
        (300, 3, 5, np.float64),
        (300, 2, 141, np.float32),
        (40, 1, 132, np.float64),
        (40, 4, 64, np.float32),
        (0, 4, 9, np.float32),
    ],
)
def test_against_numpy(rows, heads, width, dtype, num_threads):
    grad, out, bias = _inputs(rows, heads * width, dtype)
    expected = _expected(grad, out, bias, heads)
    for a, b in zip(relu_backward_dots(grad, out, bias, heads, p=P), expected, strict=True):
        close(a, b)
    # and written over the gradient, also where vectors share columns
    got = relu_backward_dots(grad, out, bias, heads, p=P, grad_feats=grad)
    assert got[0] is grad
    for a, b in zip(got, expected, strict=True):
        close(a, b)


def test_the_same_bits_as_the_plain_gradient():
    grad, out, bias = _inputs(700, 36, np.float32)
    row, sums, _ = relu_backward_dots(grad, out, bias, 4, p=P)
    plain = activate_backward(grad, out, p=P, row_ids=np.arange(700))
    assert np.array_equal(row, plain[0])
    assert np.array_equal(sums, plain[1])


def test_bfloat16_is_summed_in_float32():
    bits = [reference.to_bfloat16(rows) for rows in _inputs(80, 36, np.float32)[:2]]
    grad, out = (reference.widened(one) for one in bits)
    bias = rows_of(1, 36, np.float32, 2)[0]
    row, *sums = relu_backward_dots(*bits, bias, 4, p=P)
    expected = _expected(grad, out, bias, 4)
    assert np.array_equal(row, reference.to_bfloat16(expected[0]))
    close(sums[0], expected[1])
    close(sums[1], (grad * out - expected[0] * bias).reshape(80, 4, 9).sum(axis=2))


def test_what_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="rows of 3 heads"):
        relu_backward_dots(np.zeros((2, 8)), np.zeros((2, 8)), None, 3)
