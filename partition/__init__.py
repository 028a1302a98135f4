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

# ruff: noqa: F401  (names for checkers of types; they are imported on first use)

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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

_NAMES = {
    "core.book": ("PartitionBook",),
    "core.local_graph": ("Csr", "LocalGraph", "build_local"),
    "core.plan": ("ExchangePlan",),
    "core.vertex_cut": ("VertexCut",),
    "folder.describe": ("describe",),
    "folder.manifest_file": ("read_manifest",),
    "folder.reader": ("load_part",),
    "methods": ("METHODS", "cut_edges"),
    "pipeline": ("local_part", "partition_graph", "write_partition"),
    "repartition": ("against_libra",),
}
_PLACES = {name: f"{__name__}.{module}" for module, names in _NAMES.items() for name in names}
__all__ = list(_PLACES)


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_PLACES[name]), name)
