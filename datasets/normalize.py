"""Scale feature rows to sum 1, as many published recipes do."""

from typing import Any

import numpy as np
import scipy.sparse

from distgnn.datasets.fields import GraphFields
from distgnn.errors import InputError


def normalize_feats(graph: GraphFields, how: str) -> dict[str, Any]:
    """The fields of `graph` that change: see `GraphData.normalize_feats`."""
    if how != "row":
        raise InputError(f"unknown way to normalise features {how!r}; known is 'row'")
    if graph.feats is None:
        raise InputError(f"graph {graph.name!r} has no features to normalise")
    total = np.abs(graph.feats).sum(axis=1, dtype=np.float64)
    total = np.asarray(total).reshape(-1, 1)
    scale = np.divide(1.0, total, out=np.zeros_like(total), where=total > 0).astype(np.float32)
    if scipy.sparse.issparse(graph.feats):
        feats = graph.feats.multiply(scale).tocsr().astype(np.float32)
    else:
        feats = np.asarray(graph.feats, dtype=np.float32) * scale
    return {"feats": feats, "notes": {**graph.notes, "normalized_feats": how}}
