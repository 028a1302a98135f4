"""Layers and models of PyG on the types and relations of P ranks equal plain PyG on the whole HeteroData.

Outputs by type, gradients of parameters, and the losses of some steps.
"""

import warnings

import pytest
import torch
from against_dgl import default_float64
from typed_parts import random_typed, same_steps, typed_graph

from distgnn.errors import InputError

pytest.importorskip("torch_geometric")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from pyg_typed import CASES, graph_for, pyg
    from torch_geometric.nn import SAGEConv

WRITES = ("author", "writes", "paper")


@pytest.mark.mpi(3)
@default_float64()
def test_every_layer_gives_what_plain_pyg_gives(comm):
    for number, name in enumerate(CASES):
        whole = graph_for(name, random_typed, number)
        same_steps(name, CASES[name], whole, whole.to_pyg, comm)


@pytest.mark.mpi(2)
@default_float64()
def test_what_would_mix_types_is_refused_in_one_line(comm):
    graph = typed_graph(random_typed(), comm)
    x, writes = graph.x_dict, graph[WRITES].edge_index
    near = graph["near"].edge_index  # of as many venues as authors
    refused = {
        "rows of two types do not go together": lambda: x["author"].sum(1) + x["venue"].sum(1),
        "rows of two types": lambda: SAGEConv((8, 4), 4)((x["author"], x["venue"]), near),
        "do not go together": lambda: x["author"].sum(1) + x["paper"].sum(1),
        "add_self_loops=False": lambda: pyg.GATConv((8, 16), 4)((x["author"], x["paper"]), writes),
        "counts arcs at both ends": lambda: pyg.GCNConv(8, 4)(x["author"], near),
        "to which an offset was added": lambda: x["author"][(writes + torch.tensor([[3], [4]]))[0]],
        "offsets of their vertices": lambda: torch.cat([near, writes + torch.tensor([[3], [4]])], 1),
        "before it is cut": lambda: graph.__setitem__("new", {}),
        "there is no 'reads'": lambda: graph["reads"],
    }
    for says, run in refused.items():
        with pytest.raises((InputError, KeyError), match=says):
            run()
    with pytest.raises(InputError, match="algorithm='cd-0'"):
        typed_graph(random_typed(), comm, algorithm="cd-2")
