"""Arcs between types of random graphs: steps of a layer of PyG or DGL on ranks equal steps of the plain library."""

import pytest
from against_dgl import default_float64
from typed_parts import random_steps

WRONG_BEFORE = (
    *((32, "RelGraphConv bdd"), (216, "one type: GCNConv"), (509, "one type: GATConv")),
    *((509, "FastRGCNConv"), (0, "SAGEConv, neighbours alone"), (288, "HGTConv skip")),
)


@pytest.mark.mpi(3)
@default_float64()
def test_random_graphs_give_what_plain_dgl_and_pyg_give(comm):
    """A case each; hundreds: tests/bench/typed/random_graphs.py. Behind them graphs that were wrong: of one arc, of two
    vertices, of as many vertices as relations, of a type without relations."""
    pytest.importorskip("torch_geometric")
    ran, refused = random_steps([*range(0, 500, 25), *WRONG_BEFORE], comm)
    assert ran >= 20 and refused <= 5
