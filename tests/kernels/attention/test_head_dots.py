"""Rows and a number per head: what is refused. Numbers: kernels/check."""

import numpy as np
import pytest

from distgnn.kernels import head_dots, head_mean, relu_backward_dots

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
