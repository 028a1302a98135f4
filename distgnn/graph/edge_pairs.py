"""EdgePairs: this rank's pairs of a split of edges; and negative edges, drawn anew in each step.

Legend: M pairs of the whole split, m of this rank, K negatives.

Negative edges: pairs at random, drawn anew in each step, the same for any number of ranks.

A pair's negatives are a function of (seed, step, the pair's row in its split, which of its negatives): see
`kernels/simd/random_vectors.py`. Nothing is exchanged for them, and nothing is stored.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from distgnn.config import check_choice
from distgnn.config.task import NEGATIVES, SPLITS
from distgnn.errors import InputError
from distgnn.kernels.simd.random_vectors import derive_key, philox_python
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


NEGATIVE_TAG = 0x6E656761  # "nega"
SITE = -1  # counted like a site of dropout: who draws twice in a step gets other pairs
LOW, HALF = np.uint64(0xFFFFFFFF), np.uint64(32)


def negative_edges(graph: Any, pairs: EdgePairs, per_positive: int = 1, kind: str = "uniform") -> np.ndarray:
    """Pairs of vertices at random for the training pairs of this rank in this step (`graph.step`).

    Args:
        pairs: of `graph.edge_pairs("train")`.
        per_positive: negatives for each pair.
        kind: "uniform": both ends at random; "source": the pair's source with a target at random, as in ogbl-citation2.

    Returns: int64 [m · per_positive, 2], a pair's one after the other.

    Notes: any pair of vertices may come, also an edge: on a sparse graph hardly ever.

    Example:
        >>> graph = dg.load("links")
        >>> pairs = graph.edge_pairs("train")
        >>> dg.negative_edges(graph, pairs, per_positive=2).shape == (2 * pairs.num_pairs, 2)
        True
    """
    check_choice("negatives", kind, NEGATIVES)
    if per_positive < 1:
        raise InputError(f"num_negatives is {per_positive}: expected at least 1")
    key = derive_key(graph.seed, graph.step, graph.random_keys.next_call(SITE), NEGATIVE_TAG)
    ids = np.repeat(pairs.ids, per_positive)
    draws = np.tile(np.arange(per_positive), len(pairs.ids))
    # Two 64-bit numbers for each (row, draw).
    rows, key_words = ids.astype(np.uint64), (int(key[0]), int(key[1]))
    counter = draws.astype(np.uint64), rows & LOW, rows >> HALF, np.uint64(key[2])
    words = philox_python(counter, key_words)
    first, second = words[0] | words[1] << HALF, words[2] | words[3] << HALF
    count = np.uint64(graph.num_global_nodes)
    targets = (second % count).astype(np.int64)  # of 2^64 numbers: all vertices alike but for 1 in 10^9
    sources = np.repeat(pairs.pairs[:, 0], per_positive) if kind == "source" else (first % count).astype(np.int64)
    return np.stack([sources, targets], axis=1)
