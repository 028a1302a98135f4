"""Row kernels at memory speed: numpy arrays in and out, compiled by numba, parallel over target rows.

Ids int32 or int64; rows C-contiguous float32, float64 or bfloat16 (as uint16 bit patterns). Every kernel has a
slow twin in `kernels/check/`.
"""

if __name__ != "distgnn.kernels":
    raise ImportError("this folder is the package distgnn.kernels: import that name")

from distgnn.kernels.attention.attention import (
    attention,
    attention_backward,
    attention_partial,
    finish_attention,
    merge_attention,
)
from distgnn.kernels.attention.gatv2_scores import pair_scores, pair_scores_backward
from distgnn.kernels.attention.head_dots import head_dots, head_mean, head_outer, head_scores, relu_backward_dots
from distgnn.kernels.attention.sddmm import sddmm
from distgnn.kernels.graph.aggregate import block_csr, block_rows, spmm, spmm_blocked
from distgnn.kernels.graph.csr import BlockedCsr, csr_from_edges, transpose_csr
from distgnn.kernels.graph.extremes import add_winners, count_ties, tied_sums
from distgnn.kernels.rowwise.activation import activate, activate_backward, dropout
from distgnn.kernels.rowwise.cross_entropy import cross_entropy, cross_entropy_backward
from distgnn.kernels.rowwise.matmul import inner_product, inner_products, narrow_products, product
from distgnn.kernels.rowwise.narrow_product import narrow_product
from distgnn.kernels.runtime.arrays import empty_rows
from distgnn.kernels.runtime.jit import compilation
from distgnn.kernels.runtime.memory import give_back_freed_memory, return_large_blocks
from distgnn.kernels.runtime.threads import get_num_threads, set_num_threads
from distgnn.kernels.runtime.tuning import Tuning
from distgnn.kernels.wire.codecs import decode_rows, encode_rows
from distgnn.kernels.wire.gather import add_rows, pack_rows

__all__ = [
    "BlockedCsr",
    "Tuning",
    "activate",
    "activate_backward",
    "add_rows",
    "add_winners",
    "attention",
    "attention_backward",
    "attention_partial",
    "block_csr",
    "block_rows",
    "compilation",
    "count_ties",
    "cross_entropy",
    "cross_entropy_backward",
    "csr_from_edges",
    "decode_rows",
    "dropout",
    "empty_rows",
    "encode_rows",
    "finish_attention",
    "get_num_threads",
    "give_back_freed_memory",
    "head_dots",
    "head_mean",
    "head_outer",
    "head_scores",
    "inner_product",
    "inner_products",
    "merge_attention",
    "narrow_product",
    "narrow_products",
    "pack_rows",
    "pair_scores",
    "pair_scores_backward",
    "product",
    "relu_backward_dots",
    "return_large_blocks",
    "sddmm",
    "set_num_threads",
    "spmm",
    "spmm_blocked",
    "tied_sums",
    "transpose_csr",
]
