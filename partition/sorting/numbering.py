"""New numbers for vertices, by cluster or by degree, so that what is used together lies together.

Shapes: N vertices, K clusters.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from distgnn.kernels.runtime.jit import kernel


class Numbering(NamedTuple):
    """number: int32 [N], new number of each vertex, by cluster (largest first), then id; begins: int64 [K + 1]."""

    number: np.ndarray
    begins: np.ndarray


def number_by_cluster(labels: np.ndarray, volumes: np.ndarray) -> Numbering:
    """Number vertices by cluster, clusters by volume (largest first; ties: lower label).

    Args: labels: [N], the vertex whose cluster each is in; volumes: int64 [N], degrees of the cluster of each label.
    """
    sizes = np.bincount(labels, minlength=len(labels))
    present = np.flatnonzero(sizes)
    present = present[np.argsort(-volumes[present], kind="stable")]
    begins = np.zeros(len(present) + 1, dtype=np.int64)
    np.cumsum(sizes[present], out=begins[1:])
    sizes[present] = begins[:-1]  # now: the next number in each cluster
    # Every vertex of a cluster takes the next number of the range begins[k] to begins[k + 1]: a cluster is a range of
    # vertices, and of the edges sorted by their lower end.
    number = np.empty(len(labels), dtype=np.int32)
    _number(labels, sizes, number)
    return Numbering(number, begins)


@kernel
def _number(labels, next_number, number):
    """number[v] = the next number of the cluster of v, in the order of ids."""
    for v in range(labels.shape[0]):
        number[v] = next_number[labels[v]]
        next_number[labels[v]] += 1


def number_by_degree(degrees: np.ndarray) -> np.ndarray:
    """Number int32 [N] of each vertex, largest degree first; ties: lower id.

    Notes: memory 8 bytes for each of the degrees that there could be, up to the largest.
    """
    number = np.empty(len(degrees), dtype=np.int32)
    # As argsort would give, in two passes: how many have each degree says where each begins.
    _number_by_degree(degrees, np.zeros(int(degrees.max(initial=0)) + 2, dtype=np.int64), number)
    return number


@kernel
def _number_by_degree(degrees, next_number, number):
    largest = next_number.shape[0] - 2
    for v in range(degrees.shape[0]):
        next_number[largest - degrees[v] + 1] += 1
    for place in range(largest + 1):
        next_number[place + 1] += next_number[place]
    for v in range(degrees.shape[0]):
        number[v] = next_number[largest - degrees[v]]
        next_number[largest - degrees[v]] += 1
