"""A graph from a square sparse matrix of scipy, torch, `torch_sparse` or `dgl.sparse`: [u, v] is the arc u -> v."""

from typing import Any

import numpy as np

from distgnn.datasets.findings.findings import Findings
from distgnn.datasets.objects.arrays import Fields, from_arrays
from distgnn.datasets.objects.symmetric import halve
from distgnn.datasets.objects.values import sparse_matrix
from distgnn.datasets.pairs import pair_keys, repeated_edges
from distgnn.errors import InputError


def from_matrix(adjacency: Any, directed: bool, weighted: bool | None, fields: Fields, findings: Findings) -> Fields:
    """See `GraphData.from_scipy`."""
    matrix = sparse_matrix(adjacency)
    if matrix is None or len(matrix.shape) != 2 or matrix.shape[0] != matrix.shape[1]:
        shape = f" {list(matrix.shape)}" if matrix is not None else ""
        raise InputError(f"expected a square scipy sparse matrix, found {type(adjacency).__name__}{shape}")
    entries, num_nodes = matrix.tocoo(), matrix.shape[0]
    sources, targets = entries.row.astype(np.int64), entries.col.astype(np.int64)
    zeros = int(np.count_nonzero(entries.data == 0))
    if zeros:
        findings.add("caution", "edges", f"{zeros} stored zeros are edges; eliminate_zeros() takes them out", zeros)
    again = len(repeated_edges(pair_keys(sources, targets, num_nodes)))
    if again:
        text = f"{again} entries are there twice and are parallel edges; sum_duplicates() makes one of them"
        findings.add("caution", "edges", text, again)
    if weighted is None and "edge_weight" not in fields and (entries.data[entries.data != 0] != 1).any():
        findings.add(
            "left out",
            "values",
            "the values, not taken as edge weights (take them with weighted=True)",
            len(entries.data),
        )
    found: Fields = {"name": "scipy"}
    if weighted:
        found["edge_weight"] = entries.data
    if not directed:
        kept, halved = halve(sources, targets, num_nodes, {key: found[key] for key in found if key == "edge_weight"})
        sources, targets, found = sources[kept], targets[kept], found | halved
    return from_arrays((sources, targets), num_nodes, directed, {**found, **fields}, findings)
