"""Parts of 0 and 1 rows: every kernel in all forms of its arguments, and the check that its first call makes."""

import numpy as np
import pytest

from distgnn import kernels
from distgnn.kernels.check import cases, reference
from distgnn.kernels.check.checked import KERNELS
from distgnn.kernels.check.inputs import SMALL, Graph
from distgnn.kernels.runtime.formats import BlockedCsr

EXAMPLES = list(cases.examples())
GRAPHS = {
    "no rows": Graph(np.zeros(1, np.int64), np.zeros(0, np.int64), 0),
    "one row": Graph(np.array([0, 2]), np.array([1, 0]), 2),  # of one arc the gradient of attention is rounding alone
    "one row without arcs": Graph(np.zeros(2, np.int64), np.zeros(0, np.int64), 1),
}


def shortened(name: str, value: object, count: int) -> object:
    """An argument of an example, which has 4 rows, with 0 or 1 row or arc; what has no rows stays."""
    if isinstance(value, BlockedCsr):
        return kernels.block_csr(np.arange(count + 1), np.zeros(count, np.int32), 1, 4)
    if not isinstance(value, np.ndarray):
        return value
    if name == "factors":
        return value[:, :count].copy()
    if name in ("indices", "others"):
        return np.zeros(count, value.dtype)
    return value[: count + (name == "indptr")].copy() if len(value) in (4, 5) else value


def calls(example: cases.Example, count: int) -> dict:
    given = {name: shortened(name, value, count) for name, value in example.given.items()}
    given |= {"piece": slice(0, count)} if "piece" in given else {}
    more = {
        "csr_from_edges": {"num_rows": count},
        "transpose_csr": {"num_cols": count},
        "block_csr": {"num_cols": count, "block_rows": 4},
    }
    return given | more.get(example.kernel, {})


@pytest.mark.parametrize("name", cases.CASES)
def test_few_rows_are_computed_and_a_first_call_with_them_is_checked(name):
    """`given` is what a rank with so few rows calls: the check finds the form of each argument all the same."""
    kernel, check = KERNELS[name], cases.CASES[name]
    for example in (example for example in EXAMPLES if example.kernel == name):
        for count in (0, 1):
            for pair in check(kernel, calls(example, count), SMALL):
                assert reference.difference(*pair) <= 1, (example.label, count)
        for few, graph in GRAPHS.items():
            for pair in check(kernel, example.given, graph):
                assert reference.difference(*pair) <= 1, (example.label, few)
