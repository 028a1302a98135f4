"""What of a graph PyG is told: columns by its names, and pools of a graph that is spread, as long as it is there."""

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
