"""Rows of both ends on arcs, over P ranks, equal DGL's on the whole graph, with gradients."""

from itertools import product

import pytest
import torch
from arc_rows import SHAPES, Case, dgl


@pytest.mark.mpi(3)
@pytest.mark.parametrize("shape", ["one column", "same", "broadcast both ways"])
def test_messages_of_two_operands(comm, shape):
    case = Case(comm, *SHAPES[shape])
    ends = [(left, right) for left, right in product("uve", "uve") if left != right]
    for (left, right), op in product(ends, ("add", "sub", "mul", "div", "dot")):
        if op == "dot" and shape == "broadcast both ways":
            continue
        case.compare(left + right, getattr(dgl.ops, f"{left}_{op}_{right}"), on_arcs=True)


@pytest.mark.mpi(2)
def test_integers_travel_to_arcs(comm):
    case = Case(comm)
    graph = case.graph
    graph.ndata["id"] = torch.from_numpy(graph.owned_ids)
    graph.apply_edges(lambda edges: {"s": edges.src["id"], "t": edges.dst["id"]})
    sources, targets, _ = case.edges.arcs()
    by_id = dict(zip(case.arc_ids.tolist(), zip(sources.tolist(), targets.tolist(), strict=True), strict=True))
    ends = zip(graph.edata["s"].tolist(), graph.edata["t"].tolist(), strict=True)
    assert graph.edata["s"].dtype == torch.int64
    assert list(ends) == [by_id[arc] for arc in graph.local.arc_ids.tolist()]
