"""A seeded share of the fuzz over objects; tests/bench/fuzz/objects.py tries many more."""

import pytest
from fuzz_objects import KINDS, try_one

CASES = 60
MODULES = {"pyg": "torch_geometric", "pyg adj_t": "torch_geometric", "pandas": "pandas"}
MODULES |= dict.fromkeys(("batch", "both ways"), "torch_geometric")


@pytest.mark.filterwarnings("ignore")  # of torch, on sparse tensors that the cases are made of
@pytest.mark.parametrize("kind", KINDS)
def test_objects_become_what_their_library_shows_or_one_line(kind):
    pytest.importorskip(MODULES.get(kind, "numpy"))
    outcomes = [try_one(number, (kind,))[1] for number in range(CASES)]
    assert not [outcome for outcome in outcomes if outcome.startswith("finding")]
    assert outcomes.count("taken") > CASES // 4 and "refused" in outcomes
