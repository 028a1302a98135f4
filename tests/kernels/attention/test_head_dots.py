"""Rows and a number per head: what is refused, and the same bits as the plain gradient. Numbers: kernels/check."""

import numpy as np
import pytest

from distgnn.kernels import activate_backward, head_dots, head_mean, relu_backward_dots

from ..graphs import rows_of

EIGHT = np.zeros((2, 8))


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (lambda: head_dots(EIGHT, EIGHT, 3), "rows of 3 heads"),
        (lambda: head_dots(EIGHT, EIGHT.astype(np.float32), 2), "summed alike"),
        (lambda: head_mean(EIGHT, 3), "rows of 3 heads"),
        (lambda: head_mean(EIGHT, 2, short=np.empty((2, 8), np.uint16)), "bfloat16 from float32"),
        (lambda: relu_backward_dots(EIGHT, EIGHT, None, 3), "rows of 3 heads"),
    ],
)
def test_rows_that_do_not_fit_are_refused(call, reason):
    with pytest.raises(ValueError, match=reason):
        call()


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
