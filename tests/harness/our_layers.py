"""A layer of ours on P ranks beside DGL's on the whole graph; their parameters have DGL's names and move both ways."""

import torch
from against_dgl import Inputs, num_arc_ids, run_ranks, run_whole, same
from cut_graphs import dist_graph, random_graph
from dgl_layers import WIDTH, gnn

from distgnn import nn as dnn


def same_as_dgls(comm, cases: dict, name: str) -> None:
    """Of a case: class, arguments, options, call. Every second one on a directed graph."""
    kind, arguments, options, call = cases[name]
    data = random_graph(9, directed=list(cases).index(name) % 2 == 1)
    torch.manual_seed(4)
    linear = {"linear": torch.nn.Linear(WIDTH, 4)}
    arguments = [linear.get(value, value) if isinstance(value, str) else value for value in arguments]
    ours, theirs = (getattr(library, kind)(*arguments, **options) for library in (dnn, gnn))
    ours.load_state_dict(theirs.state_dict())
    theirs.load_state_dict(ours.state_dict())
    inputs = Inputs.random(data.num_nodes, num_arc_ids(data.edge_list()))
    expected = run_whole(data, theirs.double(), inputs, call)
    same(run_ranks(dist_graph(data, comm, debug=True), ours.double(), inputs, call), expected)
