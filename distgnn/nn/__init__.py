"""Floor 6: layers with DGL's names, arguments and parameter names, and stacks of them."""

from distgnn.nn.appnp_conv import APPNPConv
from distgnn.nn.build import build_model, model_for
from distgnn.nn.deep_stacks import APPNP, GCN2
from distgnn.nn.distribute import distribute
from distgnn.nn.dropout import Dropout
from distgnn.nn.edge_gat_conv import EdgeGATConv
from distgnn.nn.edge_stacks import GINE, EdgeGAT
from distgnn.nn.gat_conv import GATConv
from distgnn.nn.gatv2_conv import GATv2Conv
from distgnn.nn.gcn2_conv import GCN2Conv
from distgnn.nn.gin_conv import GINConv
from distgnn.nn.gine_conv import GINEConv
from distgnn.nn.graph_conv import GraphConv
from distgnn.nn.label_reuse import LabelReuse
from distgnn.nn.norms import BatchNorm1d, GraphNorm, PairNorm
from distgnn.nn.rel_graph_conv import RelGraphConv, TypedLinear
from distgnn.nn.relational_stack import RGCN
from distgnn.nn.sage_conv import SAGEConv
from distgnn.nn.stacks import GAT, GCN, GIN, GATv2, GraphSAGE
from distgnn.nn.typed_input import TypedInput

__all__ = [
    "APPNP",
    "GAT",
    "GCN",
    "GCN2",
    "GIN",
    "GINE",
    "RGCN",
    "APPNPConv",
    "BatchNorm1d",
    "Dropout",
    "EdgeGAT",
    "EdgeGATConv",
    "GATConv",
    "GATv2",
    "GATv2Conv",
    "GCN2Conv",
    "GINConv",
    "GINEConv",
    "GraphConv",
    "GraphNorm",
    "GraphSAGE",
    "LabelReuse",
    "PairNorm",
    "RelGraphConv",
    "SAGEConv",
    "TypedInput",
    "TypedLinear",
    "build_model",
    "distribute",
    "model_for",
]
