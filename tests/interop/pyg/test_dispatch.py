"""What of a graph PyG is told: columns by its names, and pools of a graph that is spread, as long as it is there."""

import functools
import gc

import pytest
import torch
from cut_graphs import dist_graph, random_graph, whole_graph

from distgnn.graph.face.row_graph import with_rows

pytest.importorskip("torch_geometric")
from torch_geometric.nn import global_add_pool


def test_a_script_for_pyg_finds_its_columns():
    data = random_graph(6, weighted=True, typed=True, directed=True)
    graph, theirs = whole_graph(data), data.to_pyg()
    order = torch.from_numpy(graph.owned_ids)
    for name in ("x", "y", "train_mask", "val_mask", "test_mask", "node_type"):
        torch.testing.assert_close(getattr(graph, name), getattr(theirs, name)[order], check_dtype=False)
    arcs = torch.from_numpy(graph.local.arc_ids.copy())
    for name in ("edge_weight", "edge_attr", "edge_type"):
        torch.testing.assert_close(getattr(graph, name), getattr(theirs, name)[arcs], check_dtype=False)
    assert repr(with_rows(graph).edge_index) == f"ArcIndex([2, {theirs.num_edges}], 1 ranks)"


@pytest.mark.mpi(2)
def test_a_graph_that_is_gone_refuses_nothing(comm):
    graph = dist_graph(random_graph(2, num_nodes=83), comm)  # as no other test, whose graph may still be held
    num_owned, graph.itself = graph.num_owned, graph  # such a ring of references only ends with the garbage
    rows, index = torch.ones(num_owned, 1), torch.zeros(num_owned, dtype=torch.long)
    with pytest.raises(ValueError, match="readout"):
        global_add_pool(rows, index)
    del graph
    assert global_add_pool(rows, index).item() == num_owned


HOLDER = []


@torch.compiler.assume_constant_result
def die():
    HOLDER.clear()
    return gc.collect()


@torch.compiler.disable
def plus_one(rows):
    return rows + 1


@pytest.mark.mpi(2)
def test_compiled_while_a_graph_dies(comm):
    """Torch goes over a function again after a call that it cannot look into; each load refuses parts anew."""
    data = random_graph(2, num_nodes=89)
    HOLDER.append(dist_graph(data, comm))
    num_owned = HOLDER[0].num_owned
    rows, index = torch.ones(7, 3), torch.zeros(7, dtype=torch.long)

    @functools.partial(torch.compile, backend="eager")
    def pooled(rows, index):
        found = global_add_pool(rows, index, 1)
        die()
        return plus_one(found)

    torch.testing.assert_close(pooled(rows, index), torch.full((1, 3), 8.0))
    rows, index = torch.ones(num_owned, 3), torch.zeros(num_owned, dtype=torch.long)
    torch.testing.assert_close(pooled(rows, index), torch.full((1, 3), num_owned + 1.0))
    graph = dist_graph(data, comm)
    with pytest.raises(ValueError, match="readout"):
        pooled(rows, index)
    with_rows(graph)
    torch.testing.assert_close(pooled(rows, index), torch.full((1, 3), num_owned + 1.0))
