"""Random graph x cut x model x norm x schedule x dtype: P ranks train as one. Corners of cuts are forced."""

import pytest
from random_cases import CUTS, Case, counterexample, difference, draw

CORNERS = [
    Case(300, 60, 3, cut=cut, model=model, num_layers=2, directed=directed)
    for number, cut in enumerate(CUTS)
    for model, directed in (("gat", True), (("sage", True), ("gin", False))[number % 2])
    if cut not in ("random", "libra", "cmr")
]
CORNERS += [
    Case(300, 60, 3, model="gcn2", num_layers=8, norm="batch", dropout=0.5),  # deep
    *(Case(300, 60, 3, model=model, num_layers=3, norm="layer", dropout=0.5) for model in ("edgegat", "rgcn")),
    Case(300, 60, 3, model="gat", num_layers=3, norm="pair", block="residual", head="cat", dropout=0.5),
    Case(300, 60, 3, model="gcn", num_layers=3, norm="graph", block="residual", residual="identity"),
]


def check(case: Case, comm) -> None:
    assert not difference(case, comm), counterexample(case, comm)


@pytest.mark.mpi(3)
@pytest.mark.parametrize("case", [draw(number) for number in range(12)], ids=str)
def test_random_cases(comm, case):
    check(case, comm)


@pytest.mark.mpi(3)
@pytest.mark.parametrize("case", CORNERS, ids=str)
def test_corners_of_cuts(comm, case):
    """Parts without arcs, vertices, labels, or halos of one kind."""
    check(case, comm)


@pytest.mark.mpi(3)
def test_attention_where_a_rank_has_no_target_halos(comm):
    """As found by an attack: 300 vertices, 300 arcs, metis."""
    check(Case(300, 300, 0, directed=True, cut="metis", model="gat", num_layers=2), comm)


def test_a_case_prints_as_the_call_that_makes_it():
    case = draw(5)
    assert eval(str(case)) == case
