"""Softmax over the arcs at either end of each vertex, on P ranks, equals DGL's on the whole graph."""

import pytest
from arc_rows import Case, dgl
from cut_graphs import DIRECTED, UNDIRECTED


@pytest.mark.mpi(3)
@pytest.mark.parametrize("directed", [DIRECTED, UNDIRECTED])
def test_softmax_at_either_end(comm, directed):
    case = Case(comm, (4,), (4, 1), directed)
    for by in ("dst", "src"):
        case.compare("e", lambda graph, e, by=by: dgl.ops.edge_softmax(graph, e, norm_by=by), on_arcs=True)
    case.rows["e"] *= 2000  # no exponential overflows
    case.compare("e", dgl.ops.edge_softmax, on_arcs=True)
