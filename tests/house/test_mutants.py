"""The tables of mutants fit the code: each old text occurs once, each test exists, and each area has some."""

from collections import Counter

import pytest
from mutants import faults_of, importers, is_compiled, read_mutants

AREAS = ("comm", "datasets", "graph", "kernels", "ops", "partition", "system", "train")
FEWEST = 120


@pytest.mark.slow
def test_every_mutant_can_be_applied():
    mutants = read_mutants()
    assert [fault for mutant in mutants for fault in faults_of(mutant)] == []
    twice = [name for name, count in Counter(mutant.name for mutant in mutants).items() if count > 1]
    assert twice == []


def test_there_are_mutants_of_every_area():
    mutants = read_mutants()
    assert len([mutant for mutant in mutants if mutant.tests]) >= FEWEST
    assert {mutant.area for mutant in mutants} >= set(AREAS)


@pytest.mark.slow
def test_which_kernels_a_mutant_makes_stale():
    found = importers("partition/core/plan.py")
    assert "partition/core/local_graph.py" in found and "partition/refinement/merge.py" not in found
    kinds = {is_compiled(mutant) for mutant in read_mutants() if mutant.area in ("kernels", "partition")}
    assert kinds == {True, False}
