"""The gradient of ReLU and dropout with its dot products beside the plain gradient; numbers: kernels/check."""

import numpy as np
import pytest

from distgnn.kernels import activate_backward, relu_backward_dots

from ..graphs import rows_of


@pytest.mark.parametrize("heads, width", [(4, 9), (2, 141)])
def test_the_same_bits_as_the_plain_gradient_and_over_it(heads, width, num_threads):
    """Also where vectors share columns."""
    grad, out = rows_of(700, heads * width), np.maximum(rows_of(700, heads * width, seed=1), 0)
    bias = rows_of(1, heads * width, seed=2)[0]
    expected = relu_backward_dots(grad, out, bias, heads, p=0.25)
    plain = activate_backward(grad, out, p=0.25, row_ids=np.arange(700))
    got = relu_backward_dots(grad, out, bias, heads, p=0.25, grad_feats=grad)
    assert got[0] is grad
    for a, b in zip((*got, *expected[:2]), (*expected, *plain[:2]), strict=True):
        np.testing.assert_array_equal(a, b)
