"""Unmodified modules and scripts of DGL with rows of all ranks, on P ranks, equal plain DGL."""

import warnings

import pytest
import torch
from against_dgl import Inputs, num_arc_ids, run_rows, run_whole, same
from cut_graphs import DIRECTED, UNDIRECTED, dist_graph, random_graph
from dgl_layers import cases

from distgnn.graph.row_graph import with_rows

CASES = cases()


def make(name: str):
    torch.manual_seed(4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return CASES[name][0]().double()


@pytest.mark.mpi(1, 2, 3)
@pytest.mark.parametrize("name", CASES)
def test_module_runs_unchanged(comm, name):
    data = random_graph(12, directed=DIRECTED if comm.size == 3 else UNDIRECTED)
    model, call = make(name), CASES[name][1]
    inputs = Inputs.random(data.num_nodes, num_arc_ids(data.edge_list()))
    expected = run_whole(data, model, inputs, call)
    same(run_rows(with_rows(dist_graph(data, comm, debug=True)), model, inputs, call), expected)
