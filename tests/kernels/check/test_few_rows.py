"""Parts of 0 and 1 rows: every kernel in all forms of its arguments."""

import numpy as np
import pytest

from distgnn import kernels
from distgnn.kernels.check import cases, reference
from distgnn.kernels.check.inputs import Graph

NOTHING, TWO = np.zeros(0, np.int32), np.array([1, 0], np.int32)  # as ids in all examples: no further kernels
GRAPHS = {
    "no rows": Graph(np.zeros(1, np.int64), NOTHING, 0),
    "one row": Graph(np.array([0, 2]), TWO, 2),  # of one arc the gradient of attention is rounding alone
    "one row without arcs": Graph(np.zeros(2, np.int64), NOTHING, 1),
}


@pytest.mark.parametrize("name", cases.CASES)
def test_few_rows_are_computed(name):
    for example in (example for example in cases.examples() if example.kernel == name):
        for few, graph in GRAPHS.items():
            for pair in example.pairs(getattr(kernels, name), graph):
                assert reference.difference(*pair) <= 1, (example.label, few)
