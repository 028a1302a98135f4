"""Layers with DGL's names, arguments and parameter names, and stacks of them."""

from distgnn.config import Block
from distgnn.nn.conv.gat_conv import EdgeGATConv, GATConv, GATv2Conv
from distgnn.nn.conv.gin_conv import GINConv, GINEConv
from distgnn.nn.conv.graph_conv import APPNPConv, GCN2Conv, GraphConv
from distgnn.nn.conv.rel_graph_conv import RelGraphConv, TypedLinear
from distgnn.nn.conv.sage_conv import SAGEConv
from distgnn.nn.distribute import distribute
from distgnn.nn.dropout import Dropout
from distgnn.nn.models.build import build_model, model_for
from distgnn.nn.models.deep_stacks import APPNP, GCN2
from distgnn.nn.models.edge_stacks import GINE, RGCN, EdgeGAT, TypedInput
from distgnn.nn.models.stacks import GAT, GCN, GIN, GATv2, GraphSAGE
from distgnn.nn.node_embedding import NodeEmbedding
from distgnn.nn.norms import BatchNorm1d, GraphNorm, PairNorm
from distgnn.nn.pair_predictor import PairDecoder, PairPredictor

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
    "Block",
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
    "NodeEmbedding",
    "PairDecoder",
    "PairNorm",
    "PairPredictor",
    "RelGraphConv",
    "SAGEConv",
    "TypedInput",
    "TypedLinear",
    "build_model",
    "distribute",
    "model_for",
]
