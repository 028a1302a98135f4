"""RelGraphConv, of arcs one by one and in groups, equals DGL's; what it refuses."""

import pytest
from dgl_layers import WIDTH
from dgl_layers import with_types_and_norm as typed
from our_layers import same_as_dgls

from distgnn import nn as dnn
from distgnn import ops


def typed_groups(layer, graph, inputs):
    """Ours with arcs grouped by relation, DGL's as it is; weights that are no parameters."""
    norm = inputs.edge_weight.detach()
    if isinstance(layer, dnn.RelGraphConv):
        return layer(graph, inputs.feats, ops.RelationArcs(graph, inputs.etypes, 3, norm))
    return layer(graph, inputs.feats, inputs.etypes, norm[:, None])


CASES = {  # name: class, arguments, options, call
    "rgcn": ("RelGraphConv", (WIDTH, 4, 3), {}, typed),
    "rgcn groups": ("RelGraphConv", (WIDTH, 4, 3, "basis", 2), {}, typed_groups),
    "rgcn groups bdd": ("RelGraphConv", (WIDTH, 16, 3, "bdd", 8), {}, typed_groups),
    "rgcn basis": ("RelGraphConv", (WIDTH, 4, 3, "basis", 2), {"layer_norm": True}, typed),
    "rgcn bdd": ("RelGraphConv", (WIDTH, 16, 3, "bdd"), {"num_bases": 8, "self_loop": False, "bias": False}, typed),
}


@pytest.mark.mpi(3)
@pytest.mark.parametrize("name", CASES)
def test_our_layer_equals_dgls(comm, name):
    same_as_dgls(comm, CASES, name)


def test_arguments_that_no_layer_has_are_refused():
    with pytest.raises(ValueError, match="multiples of num_bases"):
        dnn.RelGraphConv(7, 4, 3, "bdd", 2)
    with pytest.raises(ValueError, match="needs num_bases"):
        dnn.TypedLinear(7, 4, 3, "basis")
