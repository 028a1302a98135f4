"""Floor 5: differentiable operations over the whole graph. Forward and backward are mirrored exchanges."""

from distgnn.ops.activation import After, activate, after
from distgnn.ops.attend import Heads, attend
from distgnn.ops.buffers import Buffers
from distgnn.ops.convolve import Terms, convolve
from distgnn.ops.dropout import dropout
from distgnn.ops.extreme import arc_extreme, extreme
from distgnn.ops.halo import halo_broadcast, halo_reduce
from distgnn.ops.heads import spmm_heads
from distgnn.ops.messages import gsddmm, gspmm
from distgnn.ops.on_arcs import from_arcs, to_arcs
from distgnn.ops.pair_scores import pair_scores
from distgnn.ops.recompute import recompute
from distgnn.ops.relation_arcs import RelationArcs
from distgnn.ops.softmax import edge_softmax
from distgnn.ops.sparse_rows import SparseRows
from distgnn.ops.spmm import spmm
from distgnn.ops.sums import all_sum

__all__ = [
    "After",
    "Buffers",
    "Heads",
    "RelationArcs",
    "SparseRows",
    "Terms",
    "activate",
    "after",
    "all_sum",
    "arc_extreme",
    "attend",
    "convolve",
    "dropout",
    "edge_softmax",
    "extreme",
    "from_arcs",
    "gsddmm",
    "gspmm",
    "halo_broadcast",
    "halo_reduce",
    "pair_scores",
    "recompute",
    "spmm",
    "spmm_heads",
    "to_arcs",
]
