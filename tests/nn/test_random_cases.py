"""Random graph x cut x model x norm x schedule x dtype: P ranks train as one. Corners of cuts are forced."""

import pytest
from random_cases import CUTS, Case, difference, draw

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
    Case(300, 300, 0, directed=True, cut="metis", model="gat", num_layers=2),  # found by an attack
]


@pytest.mark.mpi(3)
@pytest.mark.parametrize("case", [*map(draw, range(12)), *CORNERS], ids=str)
def test_random_cases(comm, case):
    """Also of parts without arcs, vertices, labels, or halos of one kind."""
    found = difference(case, comm)
    assert not found, f"{case} on {comm.size} ranks: {found}"


def test_a_case_prints_as_the_call_that_makes_it():
    case = draw(5)
    assert eval(str(case)) == case
