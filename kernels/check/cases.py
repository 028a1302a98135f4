"""What every kernel is compared on: a case for each kernel, and examples of how it is called.

    CASES[name](function, graph, rows, **switches) -> [(got, expected), …]

A case makes its arguments from `graph` and `rows`. reference.py gives the expected results.
`distgnn check` runs all examples on the user's machine: DGL's aggregation once returned all zeros on papers100M
(dmlc/dgl issue 3471).
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from distgnn import kernels
from distgnn.config.schedule import WIRES
from distgnn.kernels.check import cases_of
from distgnn.kernels.check.cases_of import Graph, Pairs, Rows, large_graph
from distgnn.kernels.check.reference import difference, relative_error, to_bfloat16

# The case of kernel `spmm` is the function `spmm_case` there.
CASES: dict[str, Callable[..., Pairs]] = {
    name.removesuffix("_case"): case for name, case in vars(cases_of).items() if name.endswith("_case")
}
Switches = dict[str, Any]
ONCE: tuple[tuple[str, Switches], ...] = (
    ("csr_from_edges", {}),
    ("transpose_csr", {}),
    ("block_csr", {}),
    *((f"{name} {wire}", {"wire": wire}) for wire in WIRES for name in ("encode_rows", "decode_rows")),
)
OF_FLOATS: tuple[tuple[str, Switches], ...] = (  # the first word of a label is the kernel
    ("spmm sum", {"weighted": True, "scales": "source target"}),
    ("spmm mean", {"reduce": "mean"}),
    ("spmm mean added", {"reduce": "mean", "accumulate": True}),
    ("spmm max", {"reduce": "max", "keep_inf": True}),
    ("spmm min", {"reduce": "min", "winners": False}),
    ("add_winners", {}),
    ("count_ties", {}),
    ("tied_sums", {}),
    ("spmm_blocked", {}),
    ("spmm_blocked piece", {"is_piece": True}),
    ("sddmm", {}),
    ("sddmm of heads", {"heads": True}),
    ("attention", {"slope": 0.1}),
    ("attention_partial", {}),
    ("attention_backward", {"slope": 0.1}),
    ("attention_backward of a mean", {"of_mean": True}),
    ("merge_attention", {}),
    ("finish_attention", {}),
    ("pair_scores", {}),
    ("pair_scores_backward", {}),
    ("head_dots", {}),
    ("head_dots for all heads", {"for_all_heads": True}),
    ("head_outer", {}),
    ("head_scores", {}),
    ("head_mean", {}),
    ("relu_backward_dots", {}),
    ("product", {}),
    ("product added", {"accumulate": True}),
    ("inner_product", {}),
    ("narrow_product", {}),
    ("dropout", {}),
    ("activate", {"bias": True, "p": 0.3}),
    ("activate norm", {"bias": True, "norm": True, "p": 0.3}),
    ("activate norm only", {"norm": True, "activation": "none"}),
    ("activate_backward", {}),
    ("activate_backward norm", {"norm": True}),
    ("activate_backward norm, no relu", {"norm": True, "activation": "none"}),
    ("cross_entropy", {}),
    ("cross_entropy_backward", {}),
    ("cross_entropy smoothed", {"smoothing": 0.1}),
    ("cross_entropy_backward smoothed", {"smoothing": 0.1}),
    ("pack_rows", {}),
    ("add_rows", {}),
)
OF_BFLOAT16: tuple[tuple[str, Switches], ...] = (
    ("spmm sum", {}),
    ("spmm weighted sum", {"weighted": True, "by_id": True, "scales": "source"}),
    ("spmm max", {"reduce": "max"}),
    ("attention", {}),
    ("attention_backward", {}),
    ("attention_backward of a mean", {"of_mean": True}),
    ("head_dots for all heads", {"for_all_heads": True}),
    ("head_scores", {}),
    ("relu_backward_dots", {}),
    ("head_outer", {}),
    ("head_mean", {}),
    ("product", {}),
    ("product added", {"accumulate": True}),
    ("inner_product", {}),
    ("narrow_product", {}),
    ("activate", {"norm": True, "activation": "none"}),
    ("activate to", {"to": np.uint16}),
    ("pack_rows to", {}),
    ("add_rows of", {}),
)


class Example(NamedTuple):
    """A call of one kernel, on rows of a dtype."""

    label: str
    dtype: str
    switches: Switches

    @property
    def kernel(self) -> str:
        return self.label.split()[0]

    def pairs(self, function: Callable, graph: Graph, **widths: int) -> Pairs:
        """What a kernel gives, and what is expected, of rows of other `widths` than usual (`Rows`)."""
        return CASES[self.kernel](function, graph, Rows(self.dtype, **widths), **self.switches)


def examples(dtypes: tuple[str, ...] = ("float32", "float64")) -> Iterator[Example]:
    """At least one call of every kernel, with rows of each dtype; bfloat16 rows with float32."""
    yield from (Example(label, "float32", switches) for label, switches in ONCE)
    tables = [*((dtype, OF_FLOATS) for dtype in dtypes), *([("bfloat16", OF_BFLOAT16)] if "float32" in dtypes else [])]
    for dtype, table in tables:
        yield from (Example(f"{label} {dtype}", dtype, switches) for label, switches in table)


def self_check(
    dtypes: tuple[str, ...] = ("float32", "float64"), advance: Callable[[str, int, int], None] = lambda *_: None
) -> list[tuple[str, bool, float]]:
    """Run every kernel at least once and compare.

    Args: advance: called before the first and after each, with a title, how many are done, and of how many.
    Returns: list of (kernel, ok, max_error); the error is relative to the largest expected value.
    """
    results: list[tuple[str, bool, float]] = []
    every = list(examples(dtypes))
    for example in every:
        advance("kernels", len(results), len(every))
        pairs = list(example.pairs(getattr(kernels, example.kernel), large_graph()))
        ok = all(difference(*pair) <= 1 for pair in pairs)
        error = max(relative_error(got, _as_stored(got, expected)) for got, expected in pairs)
        results.append((example.label, ok, error))
    advance("kernels", len(every), len(every))
    return results


def _as_stored(got: Any, expected: Any) -> Any:
    """`expected` in the dtype of `got`: the rounding of a bfloat16 result is no error of the kernel."""
    short, wide = np.asarray(got).dtype == np.uint16, np.asarray(expected).dtype != np.uint16
    return to_bfloat16(expected) if short and wide else expected
