"""Scores of arcs from both ends: what is refused. Numbers: kernels/check."""

import numpy as np
import pytest

from distgnn.kernels import pair_scores


def test_rows_that_do_not_fit_are_refused():
    rows = np.zeros((2, 6))
    with pytest.raises(ValueError, match="do not fit 4 heads"):
        pair_scores([0, 1, 1], [0], [0], rows, rows, rows[:1], 4)
    with pytest.raises(ValueError, match="one dtype"):
        pair_scores([0, 1, 1], [0], [0], rows, rows.astype(np.float32), rows[:1], 3)
