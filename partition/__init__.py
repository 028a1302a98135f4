"""Cutting a graph into parts: methods, the book of copies, one rank's arrays, the partition folder.

Read in this order: `vertex_cut` (what a cut is), `methods` (how one is found), `book` (which part has which copy),
`local_graph` (one rank's rows and arcs), `plan` (who sends what to whom), `folder` (the files), `pipeline` (all of it).
"""

if __name__ != "distgnn.partition":
    raise ImportError("this folder is the package distgnn.partition: import that name")

from distgnn.partition.baselines.vertex_cover import hybrid_cut
from distgnn.partition.compare_libra import against_libra
from distgnn.partition.copies_by_degree import copies_by_degree
from distgnn.partition.core.book import PartitionBook
from distgnn.partition.core.local_graph import Csr, LocalGraph, build_local
from distgnn.partition.core.plan import ExchangePlan
from distgnn.partition.core.vertex_cut import VertexCut
from distgnn.partition.folder.describe import describe
from distgnn.partition.folder.reader import load_part, read_manifest
from distgnn.partition.in_memory import local_part
from distgnn.partition.methods import METHODS, cut_edges
from distgnn.partition.pipeline import partition_graph, write_partition

__all__ = [
    "METHODS",
    "Csr",
    "ExchangePlan",
    "LocalGraph",
    "PartitionBook",
    "VertexCut",
    "against_libra",
    "build_local",
    "copies_by_degree",
    "cut_edges",
    "describe",
    "hybrid_cut",
    "load_part",
    "local_part",
    "partition_graph",
    "read_manifest",
    "write_partition",
]
