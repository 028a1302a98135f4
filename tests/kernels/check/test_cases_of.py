"""Every kernel on its cases: usual rows, short and wide ones, parts of 0 and 1 rows; and one that returns zeros."""

import numpy as np
import pytest

from distgnn import kernels
from distgnn.kernels.check import cases, reference
from distgnn.kernels.check.cases_of import Graph, large_graph

EXAMPLES, GRAPH = list(cases.examples()), large_graph()
NOTHING, TWO = np.zeros(0, np.int32), np.array([1, 0], np.int32)  # as ids in all examples: no further kernels
FEW = (
    Graph(np.zeros(1, np.int64), NOTHING, 0),
    Graph(np.array([0, 2]), TWO, 2),  # of one arc the gradient of attention is rounding alone
    Graph(np.zeros(2, np.int64), NOTHING, 1),
)


def passes(example, function, graph, **widths) -> bool:
    return all(reference.difference(*pair) <= 1 for pair in example.pairs(function, graph, **widths))


@pytest.mark.parametrize("name", cases.CASES)
def test_each_case_passes_and_sees_a_kernel_that_returns_zeros(name):
    function = getattr(kernels, name)

    def zeros(*args, **options):
        results = function(*args, **options)
        several = isinstance(results, tuple)
        results = [None if r is None else np.zeros_like(r) for r in (results if several else (results,))]
        return tuple(results) if several else results[0]

    for example in (example for example in EXAMPLES if example.kernel == name):
        assert passes(example, function, GRAPH) and not passes(example, zeros, GRAPH), example.label
        for few in FEW:
            assert passes(example, function, few), (example.label, few)


OF_HEADS = (
    "attention attention_backward pair_scores pair_scores_backward head_dots head_outer head_scores head_mean "
    "relu_backward_dots"
).split()
OF_WIDTH = (
    "spmm sum,spmm max,add_winners,count_ties,tied_sums,sddmm,product,inner_product,narrow_product,dropout,"
    "activate norm,"
    "activate_backward norm,cross_entropy,cross_entropy_backward,pack_rows,add_rows,encode_rows int4,decode_rows int4"
).split(",")
SHAPES = [(name, {"heads": heads, "each": each}) for name in OF_HEADS for heads, each in ((1, 5), (2, 141))]
SHAPES += [(name, {"width": width}) for name in OF_WIDTH for width in (1, 300)]


@pytest.mark.parametrize(("label", "widths"), SHAPES, ids=lambda value: str(value))
def test_rows_shorter_than_a_register_and_wider_than_all(label, widths):
    """Tiles overlap or are cut there, and rows are worked off in several passes."""
    found = [one for one in EXAMPLES if one.label in (label, f"{label} float32")]
    assert len(found) == 1 and passes(found[0], getattr(kernels, found[0].kernel), GRAPH, **widths)
