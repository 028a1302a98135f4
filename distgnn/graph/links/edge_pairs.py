"""EdgePairs: this rank's pairs of a split of edges. A pair belongs to the rank that owns its source.

Legend: M pairs of the whole split, m of this rank, K negatives.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from distgnn.config.task import SPLITS
from distgnn.errors import InputError
from distgnn.partition import LocalGraph


@dataclass(frozen=True, repr=False)
class EdgePairs:
    """This rank's pairs of one split, and what there is beside them.

    Attributes:
        pairs: int64 [m, 2], global ids of source and target; the source is owned here.
        ids: int64 [m], rows in the split as it was given: the same for any number of ranks.
        num_pairs: M, over all ranks.
        labels: int64 (classes) or floats (values) [m], or None.
        negatives: int64 [k, 2], pairs that are no edges, for metrics; or None.
        num_negatives: of those, over all ranks.
        negative_targets: int64 [m, K], other targets for each pair's source; or None.
    """

    pairs: np.ndarray
    ids: np.ndarray
    num_pairs: int
    labels: torch.Tensor | None = None
    negatives: np.ndarray | None = None
    num_negatives: int = 0
    negative_targets: np.ndarray | None = None

    def __repr__(self) -> str:
        words = [f"{len(self.pairs)} of {self.num_pairs} pairs"]
        words += ["labels"] if self.labels is not None else []
        words += [f"{self.num_negatives} negatives"] if self.negatives is not None else []
        targets = self.negative_targets
        words += [f"{targets.shape[1]} negative targets each"] if targets is not None else []
        return f"EdgePairs({', '.join(words)})"


def edge_pairs(local: LocalGraph, split: str, dtype: torch.dtype) -> EdgePairs:
    """This rank's pairs of "train", "valid" or "test".

    Args: dtype: of labels that are values.
    """
    if split not in SPLITS:
        raise InputError(f"unknown split {split!r}: choose from {', '.join(SPLITS)}")
    shapes, arrays = local.graph.get("edge_splits", {}), local.edge_splits
    if f"{split}_edges" not in shapes:
        raise InputError(f"the graph has no {split} edges: {HOW_TO_SPLIT}")

    def array(name: str) -> np.ndarray | None:
        found: Any = arrays.get(f"{split}_{name}")
        return None if found is None else np.asarray(found)

    labels = array("edge_labels")
    values = None if labels is None else torch.from_numpy(np.array(labels))
    if values is not None and values.is_floating_point():
        values = values.to(dtype)
    return EdgePairs(
        np.asarray(arrays[f"{split}_edges"]),
        np.asarray(arrays[f"{split}_edge_ids"]),
        shapes[f"{split}_edges"][0],
        values,
        array("negatives"),
        shapes.get(f"{split}_negatives", [0])[0],
        array("negative_targets"),
    )


HOW_TO_SPLIT = (
    "hold some out with `distgnn partition --link-split 0.05,0.1`, or give the graph train_edges.npy, valid_edges.npy "
    "and test_edges.npy"
)
