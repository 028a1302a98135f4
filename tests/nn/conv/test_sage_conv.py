"""SAGEConv equals DGL's, and refuses what it has not."""

import pytest
from dgl_layers import WIDTH, plain, with_column_weights
from our_layers import same_as_dgls

from distgnn import nn as dnn

CASES = {  # name: class, arguments, options, call
    "sage mean": ("SAGEConv", (WIDTH, 4, "mean"), {}, plain),
    "sage mean wide": ("SAGEConv", (WIDTH, 8, "mean"), {}, plain),
    "sage mean weighted": ("SAGEConv", (WIDTH, 4, "mean"), {}, with_column_weights),
    "sage gcn": ("SAGEConv", (WIDTH, 4, "gcn"), {}, plain),
    "sage gcn wide": ("SAGEConv", (WIDTH, 8, "gcn"), {}, plain),
    "sage pool": ("SAGEConv", (WIDTH, 4, "pool"), {}, plain),
    "sage pool weighted": ("SAGEConv", (WIDTH, 4, "pool"), {}, with_column_weights),
}


@pytest.mark.mpi(3)
@pytest.mark.parametrize("name", CASES)
def test_our_layer_equals_dgls(comm, name):
    same_as_dgls(comm, CASES, name)


def test_an_aggregator_that_it_has_not_is_refused():
    with pytest.raises(ValueError, match="unknown aggregator_type 'lstm': choose from mean, gcn, pool"):
        dnn.SAGEConv(3, 4, "lstm")
