"""Cutting a graph into parts: methods, the book of copies, one rank's arrays, the partition folder.

Read in this order: `vertex_cut` (what a cut is), `methods` (how one is found), `book` (which part has which copy),
`local_graph` (one rank's rows and arcs), `plan` (who sends what to whom), `folder` (the files), `pipeline` (all of it).
Everywhere N are vertices, M edges, P parts; `degrees` [N] are of `endpoint_degrees`, `shares` [P] of `part_shares`,
`edge_part` and `parts` int16 [M]; `edges`, unlike `edge_list`, are sorted by source; `step(done, total)` hears of
progress, `empty(name, size, dtype)` makes an array. Parameters of compiled functions have numba's types.
Names are imported when they are first used: reading a manifest needs no method of cutting and no kernel.
"""

if __name__ != "distgnn.partition":
    raise ImportError("this folder is the package distgnn.partition: import that name")

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from distgnn.partition.baselines.vertex_cover import hybrid_cut
    from distgnn.partition.core.book import PartitionBook
    from distgnn.partition.core.local_graph import Csr, LocalGraph, build_local
    from distgnn.partition.core.plan import ExchangePlan
    from distgnn.partition.core.vertex_cut import VertexCut
    from distgnn.partition.folder.describe import describe
    from distgnn.partition.folder.manifest_file import read_manifest
    from distgnn.partition.folder.reader import load_part
    from distgnn.partition.methods import METHODS, cut_edges
    from distgnn.partition.pipeline import local_part, partition_graph, write_partition
    from distgnn.partition.repartition import against_libra

_PLACES = {
    "hybrid_cut": "distgnn.partition.baselines.vertex_cover",
    "against_libra": "distgnn.partition.repartition",
    "PartitionBook": "distgnn.partition.core.book",
    "Csr": "distgnn.partition.core.local_graph",
    "LocalGraph": "distgnn.partition.core.local_graph",
    "build_local": "distgnn.partition.core.local_graph",
    "ExchangePlan": "distgnn.partition.core.plan",
    "VertexCut": "distgnn.partition.core.vertex_cut",
    "describe": "distgnn.partition.folder.describe",
    "load_part": "distgnn.partition.folder.reader",
    "read_manifest": "distgnn.partition.folder.manifest_file",
    "local_part": "distgnn.partition.pipeline",
    "METHODS": "distgnn.partition.methods",
    "cut_edges": "distgnn.partition.methods",
    "partition_graph": "distgnn.partition.pipeline",
    "write_partition": "distgnn.partition.pipeline",
}

__all__ = [
    "METHODS",
    "Csr",
    "ExchangePlan",
    "LocalGraph",
    "PartitionBook",
    "VertexCut",
    "against_libra",
    "build_local",
    "cut_edges",
    "describe",
    "hybrid_cut",
    "load_part",
    "local_part",
    "partition_graph",
    "read_manifest",
    "write_partition",
]


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_PLACES[name]), name)
