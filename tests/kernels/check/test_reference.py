"""What kernels are compared with, and how: rounding as torch's, and differences in units of what rounding explains."""

import numpy as np
import pytest
import torch

from distgnn.kernels.check.reference import difference, to_bfloat16


def test_bfloat16_is_torchs():
    bits = np.random.default_rng(0).integers(0, 1 << 32, 100_000, np.uint32)
    bits[:50_000] = bits[:50_000] & 0xFFFF0000 | 0x8000  # half way between two
    rows = bits.view(np.float32)
    rounded, expected = to_bfloat16(rows), torch.from_numpy(rows).bfloat16().view(torch.uint16).numpy()
    np.testing.assert_array_equal(rounded[~np.isnan(rows)], expected[~np.isnan(rows)])
    assert torch.from_numpy(rounded).view(torch.bfloat16).isnan().numpy()[np.isnan(rows)].all()


ONES = np.ones(4, np.float32)


@pytest.mark.parametrize(
    ("got", "expected", "is_wrong"),
    [
        (ONES * (1 + 1e-6), ONES, False),
        (ONES * (1 + 1e-4), ONES, True),
        (to_bfloat16(ONES * 1.003), ONES, False),
        (ONES.astype(np.float64) + 1e-6, ONES.astype(np.float64), True),
        (ONES[:3], ONES, True),
        (np.array([1, np.inf, 3]), np.array([1.0, 2, 3]), True),
        (np.array([1, 2]), np.array([1, 3]), True),
        (np.zeros(2), np.zeros(2), False),
        (np.full(2, 1e-30), np.zeros(2), True),
    ],
)
def test_differences(got, expected, is_wrong):
    assert (difference(got, expected) > 1) == is_wrong
