"""Floor 6: layers with DGL's names, arguments and parameter names, and stacks of them."""

from distgnn.nn.build import build_model
from distgnn.nn.distribute import distribute
from distgnn.nn.dropout import Dropout
from distgnn.nn.graph_conv import GraphConv
from distgnn.nn.norms import BatchNorm1d, GraphNorm, PairNorm
from distgnn.nn.sage_conv import SAGEConv
from distgnn.nn.stacks import GCN, GraphSAGE

__all__ = [
    "GCN",
    "BatchNorm1d",
    "Dropout",
    "GraphConv",
    "GraphNorm",
    "GraphSAGE",
    "PairNorm",
    "SAGEConv",
    "build_model",
    "distribute",
]
