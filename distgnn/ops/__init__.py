"""Differentiable operations over the whole graph. Forward and backward are mirrored exchanges."""

from distgnn.ops.aggregation.aggregator import RowScale
from distgnn.ops.aggregation.convolve import ConvSpec, convolve
from distgnn.ops.aggregation.extreme import arc_extreme, extreme
from distgnn.ops.aggregation.halo import halo_broadcast, halo_reduce
from distgnn.ops.aggregation.mixed import mixed, with_neighbours
from distgnn.ops.aggregation.spmm import SelfLoops, spmm
from distgnn.ops.attention.attend import Heads, attend
from distgnn.ops.attention.heads import pair_dots, pair_scores, spmm_heads
from distgnn.ops.buffers import Buffers
from distgnn.ops.edges.messages import gsddmm, gspmm
from distgnn.ops.edges.on_arcs import from_arcs, to_arcs
from distgnn.ops.edges.relation_arcs import RelationArcs
from distgnn.ops.edges.softmax import edge_softmax
from distgnn.ops.readout import readout
from distgnn.ops.recompute import recompute
from distgnn.ops.remote_rows import RowLookup, gather_rows_at
from distgnn.ops.rowwise.activation import Epilogue, activate, dropout, dropout_of, relu, relu_dropout
from distgnn.ops.rowwise.linear import linear
from distgnn.ops.rowwise.products import plain_product
from distgnn.ops.rowwise.sparse_rows import SparseRows
from distgnn.ops.sums import all_max, all_sum

__all__ = [
    "Buffers",
    "ConvSpec",
    "Epilogue",
    "Heads",
    "RelationArcs",
    "RowLookup",
    "RowScale",
    "SelfLoops",
    "SparseRows",
    "activate",
    "all_max",
    "all_sum",
    "arc_extreme",
    "attend",
    "convolve",
    "dropout",
    "dropout_of",
    "edge_softmax",
    "extreme",
    "from_arcs",
    "gather_rows_at",
    "gsddmm",
    "gspmm",
    "halo_broadcast",
    "halo_reduce",
    "linear",
    "mixed",
    "pair_dots",
    "pair_scores",
    "plain_product",
    "readout",
    "recompute",
    "relu",
    "relu_dropout",
    "spmm",
    "spmm_heads",
    "to_arcs",
    "with_neighbours",
]
