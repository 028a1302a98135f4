"""Who sends what: both ends of any cut list the same rows; the transposed plan is the backward pass."""

from hypothesis import given, settings

from ..graphs import cut_graphs
from ..laws import built, check_plans


@settings(max_examples=60, deadline=None)
@given(cut_graphs())
def test_both_ends_list_the_same_rows_for_any_cut(case):
    check_plans(built(*case)[1])
