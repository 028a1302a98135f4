"""How many copies vertices of each degree have, from a partition folder: it is the hubs that are cut.

Shapes: O owned rows of a part, P parts, B bins of degrees.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from distgnn.partition.core.local_graph import LocalGraph
from distgnn.partition.folder.manifest_file import read_manifest
from distgnn.partition.folder.reader import load_part


def copies_by_degree(folder: str | Path) -> dict[str, np.ndarray]:
    """Vertices and their mean copies per bin of degrees.

    Returns: `from_degree` int64 [B], the least degree (arcs in and out) of each bin, doubling from 1; `vertices` int64
        [B]; `copies` float64 [B], mean copies of a vertex, the owner's included (nan where there is none).
    Raises: PartitionFormatError.
    Notes: reads all parts, one after the other.
    """
    # A bin for each binary digit of an int64: no degree needs more.
    vertices, copies = np.zeros(64, dtype=np.int64), np.zeros(64, dtype=np.int64)
    for part_id in range(read_manifest(folder)["num_parts"]):
        local = load_part(folder, part_id)
        owned = slice(0, local.num_owned)
        degrees = local.in_degrees[owned].astype(np.int64) + local.out_degrees[owned]
        # The exponent of a float is the binary logarithm, rounded down.
        bins = np.frexp(degrees)[1] - 1
        some = degrees > 0
        vertices += np.bincount(bins[some], minlength=64)
        copies += np.bincount(bins[some], weights=_copies(local)[some], minlength=64).astype(np.int64)
    last = int(np.flatnonzero(vertices).max(initial=-1)) + 1
    with np.errstate(invalid="ignore"):
        means = copies[:last] / vertices[:last]
    return {"from_degree": 1 << np.arange(last, dtype=np.int64), "vertices": vertices[:last], "copies": means}


def _copies(local: LocalGraph) -> np.ndarray:
    """Copies [O] of each owned row: itself, and each rank that it is sent to or receives partial sums from."""
    counts, plan = np.ones(local.num_owned, dtype=np.int64), local.plan
    for rank in range(local.num_parts):
        sent = plan.broadcast_rows[plan.broadcast_indptr[rank] : plan.broadcast_indptr[rank + 1]]
        summed = plan.reduce_rows[plan.reduce_indptr[rank] : plan.reduce_indptr[rank + 1]]
        # The union: a row that goes to a rank and comes back from it is one copy there.
        counts[np.union1d(sent, summed)] += 1
    return counts
