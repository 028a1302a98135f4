"""GraphConv, GCN2Conv and APPNPConv equal DGL's."""

import pytest
from dgl_layers import FREE, WIDTH, in_float64, plain, weighted, with_initial, with_initial_weighted
from our_layers import same_as_dgls

CASES = {  # name: class, arguments, options, call
    "gcn both": ("GraphConv", (WIDTH, 4, "both"), FREE, plain),
    "gcn both weighted": ("GraphConv", (WIDTH, 4, "both"), FREE, weighted),
    "gcn right wide": ("GraphConv", (WIDTH, 8, "right"), FREE, plain),
    "gcn left": ("GraphConv", (WIDTH, 4, "left"), FREE, plain),
    "gcn none": ("GraphConv", (WIDTH, 4, "none"), FREE, plain),
    "gcn none wide": ("GraphConv", (WIDTH, 8, "none"), FREE, plain),
    "gcn2": ("GCN2Conv", (WIDTH, 2), FREE, with_initial),
    "gcn2 two weights": ("GCN2Conv", (WIDTH, 2, 0.3, 0.5, False), FREE, with_initial_weighted),
    "appnp": ("APPNPConv", (3, 0.1), {}, in_float64),
    "appnp weighted": ("APPNPConv", (3, 0.1), {}, weighted),
}


@pytest.mark.mpi(3)
@pytest.mark.parametrize("name", CASES)
def test_our_layer_equals_dgls(comm, name):
    same_as_dgls(comm, CASES, name)
