"""The mean over heads, and rows in bfloat16 beside it, against numpy."""

import numpy as np
import pytest

from distgnn.kernels import head_mean
from distgnn.kernels.check import reference

from ..graphs import close, rows_of


@pytest.mark.parametrize(
    "rows, heads, width, dtype",
    [
        (300, 4, 9, np.float32),
        (70, 4, 9, np.float64),
        (50, 1, 5, np.float32),
        (20, 2, 300, np.float32),
        (50, 4, 64, np.float32),
        (0, 4, 9, np.float32),
    ],
)
@pytest.mark.parametrize("with_bias", [False, True])
def test_against_numpy(rows, heads, width, dtype, with_bias, num_threads):
    feats, bias = rows_of(rows, heads * width, dtype), rows_of(1, width, dtype, 1)[0] if with_bias else None
    expected = feats.astype(np.float64).reshape(rows, heads, width).mean(axis=1) + (0 if bias is None else bias)
    close(head_mean(feats, heads, bias), expected)
    if dtype == np.float32:
        short = np.empty(feats.shape, np.uint16)
        close(head_mean(feats, heads, bias, short=short), expected)
        assert np.array_equal(short, reference.to_bfloat16(feats))


def test_what_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="rows of 3 heads"):
        head_mean(np.zeros((2, 8), np.float32), 3)
    with pytest.raises(ValueError, match="bfloat16 from float32"):
        head_mean(np.zeros((2, 8)), 2, short=np.empty((2, 8), np.uint16))
