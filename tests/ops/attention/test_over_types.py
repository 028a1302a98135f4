"""Attention of several types: which types get rows, and what its backward pass, which makes keys again, refuses."""

import pytest
import torch
from typed_parts import random_typed, typed_graph

from distgnn.nn.models.typed_stack import HGTConv


@pytest.mark.mpi(2)
@pytest.mark.parametrize("written", ["nothing", "rows", "a parameter"])
def test_rows_of_types_with_arcs_into_them(comm, written):
    graph = typed_graph(random_typed(), comm)
    torch.manual_seed(0)
    layer = HGTConv(8, 8, graph.node_types, graph.edge_types, 4).double()
    feats = {kind: torch.randn(graph[kind].vertex_space.num_local, 8).double() for kind in graph.node_types}
    rows = {kind: one.requires_grad_() * 1 for kind, one in feats.items()}
    out = layer(graph, rows)
    assert set(out) == {key[2] for key in graph.edge_types}
    assert all(out[kind].shape == one.shape for kind, one in rows.items() if kind in out)
    with torch.no_grad():
        {"rows": rows["paper"], "a parameter": layer.skip["paper"]}.get(written, torch.zeros(1)).add_(1)
    loss = sum(one.square().sum() for one in out.values())
    if written == "nothing":
        loss.backward()
        assert all(one.grad.isfinite().all() for one in feats.values() if one.grad is not None)
    else:
        # Rows by torch itself, from some version on
        with pytest.raises(RuntimeError, match=r"rows or parameters were written to in place|modified by an inplace"):
            loss.backward()
