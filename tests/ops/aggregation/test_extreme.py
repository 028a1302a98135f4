"""Maxima and minima over P ranks equal DGL's on the whole graph, gradients and ties included."""

import pytest
from arc_rows import OPERATORS, SHAPES, Case
from cut_graphs import DIRECTED


@pytest.mark.mpi(3)
@pytest.mark.parametrize("shape", SHAPES)
def test_of_messages_of_two_operands(comm, shape):
    Case(comm, *SHAPES[shape], directed=DIRECTED).reduce("max", "min", operators=OPERATORS)


@pytest.mark.mpi(3)
@pytest.mark.parametrize("split_arcs", [False, True])
def test_of_rows_of_one_end_and_of_arcs(comm, split_arcs):
    Case(comm, split_arcs=split_arcs).reduce("max", "min")
