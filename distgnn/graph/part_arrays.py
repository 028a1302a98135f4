"""Arrays of a part as tensors in memory: they come memory-mapped, or sparse."""

import mmap
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from distgnn.comm import Transport
from distgnn.graph.features.feat_norm import FeatNorm
from distgnn.graph.features.statistics import normalized
from distgnn.ops.csr_rows import blocks
from distgnn.ops.rowwise.sparse_rows import SparseRows, worth_sparse
from distgnn.partition import LocalGraph

BLOCK_ROWS = 1 << 14


def as_tensor(array: Any, dtype: torch.dtype) -> torch.Tensor | None:
    """A copy of an array in memory; None for None."""
    return None if array is None else torch.from_numpy(np.array(array)).to(dtype)


def input_rows(
    transport: Transport,
    feats: Any,
    dtype: torch.dtype,
    *,
    sparse: bool,
    norm: FeatNorm | None = None,
    empty: Callable[[int, int, torch.dtype], torch.Tensor] | None = None,
) -> torch.Tensor | SparseRows | None:
    """Features of owned rows in memory: dense, or stored sparse where `sparse` allows it and it multiplies faster.

    Collective: yes, where `sparse` is set and features are stored sparse.

    Args: norm: what is done to them; empty: makes the dense tensor.
    """
    if sparse and hasattr(feats, "toarray") and worth_sparse(transport.comm, feats):
        return SparseRows(feats, dtype) if norm is None else normalized(norm, feats, dtype)
    if feats is None:
        return None
    rows = torch.empty(feats.shape, dtype=dtype) if empty is None else empty(feats.shape[0], feats.shape[1], dtype)
    for some in blocks(len(rows), BLOCK_ROWS):  # a second copy is never there
        block = feats[some]
        raw = torch.from_numpy(np.array(block.toarray() if hasattr(block, "toarray") else block))
        rows[some] = (raw if norm is None else norm(raw)).to(dtype)
    leave_on_disk(feats)
    return rows


def vertex_columns(
    local: LocalGraph, fill: Callable[[torch.Tensor, int | bool], torch.Tensor], label_dtype: torch.dtype
) -> dict[str, torch.Tensor]:
    """Labels, splits and types by their names in `ndata`, over the model's rows; what a part lacks is left out.

    Args: fill: makes a column over the model's rows of one over owned rows, and of a value for the others.
    """
    columns = {
        "label": (local.labels, label_dtype, -1),
        "train_mask": (local.train_mask, torch.bool, False),
        "val_mask": (local.valid_mask, torch.bool, False),
        "test_mask": (local.test_mask, torch.bool, False),
        "ntype": (local.node_types, torch.int64, 0),
    }
    found = {name: (as_tensor(array, dtype), value) for name, (array, dtype, value) in columns.items()}
    return {name: fill(column, value) for name, (column, value) in found.items() if column is not None}


def arc_columns(local: LocalGraph, dtype: torch.dtype) -> dict[str, torch.Tensor]:
    """Weights, features and types of local arcs by their names in `edata`; what a part lacks is left out."""
    columns = {"weight": as_tensor(local.edge_weight, dtype), "etype": as_tensor(local.edge_types, torch.int64)}
    if local.edge_feats is not None:  # stays mapped where its dtype is right: it may be the largest array of all
        columns["feat"] = torch.from_numpy(local.edge_feats).to(dtype)
    return {name: column for name, column in columns.items() if column is not None}


def leave_on_disk(array: Any) -> None:
    """Let go of the pages of a memory-mapped array; they are read again where it is."""
    while array is not None and not isinstance(array, mmap.mmap):
        array = getattr(array, "base", None)
    if array is not None and hasattr(mmap, "MADV_DONTNEED"):
        array.madvise(mmap.MADV_DONTNEED)
