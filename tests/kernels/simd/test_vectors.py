"""What a vector store writes, on this machine, against plain integers."""

import numpy as np
import pytest

from distgnn.kernels import activate
from distgnn.kernels.check import reference


@pytest.mark.parametrize("width", [37, 256])
def test_rounding_to_bfloat16(width):
    """To nearest even, the smallest numbers too, whether a row has only them, some of them or none; NaNs stay some."""
    generator = np.random.default_rng(0)
    bits = generator.integers(0, 1 << 32, (600, width), dtype=np.uint32)
    bits[:200] &= 0x807FFFFF  # below 2^-126
    bits[200:300, ::5] &= 0x807FFFFF
    bits[300:400] = bits[300:400] & 0xFFFF0000 | 0x8000  # half way between two
    special = [0x80000000, 0, 0x7F800000, 0xFF800000, 0x7F7FFFFF, 0xFF7FFFFF, 1, 0x80000001, 0x8000, 0x8001]
    bits[400:420] = np.resize(np.array(special, np.uint32), width)
    rows, out = bits.view(np.float32), np.empty(bits.shape, np.uint16)
    activate(rows, activation="none", out=out)
    nan, nought = np.isnan(rows), rows == 0  # adding a bias of 0 makes 0 of -0
    others = ~nan & ~nought
    np.testing.assert_array_equal(out[others], reference.to_bfloat16(rows)[others])
    assert not out[nought].any()
    assert np.isnan(reference.widened(out)[nan]).all()
