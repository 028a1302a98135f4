"""What a plan knows of a graph: its sizes, and how many rows travel when it is cut. Without the data where it must.

Legend: V vertices, P parts.
"""

import math
from dataclasses import dataclass, field
from typing import Any

from distgnn.datasets.findings.findings import Findings
from distgnn.datasets.registry import GENERATORS, NAMED, load_graph
from distgnn.errors import InputError
from distgnn.partition import PartitionBook, cut_edges

MOST_SAMPLE_EDGES = 30_000_000  # edges; a larger graph is not cut for a plan
SAMPLE_PARTS = (2, 8)
# Share of Libra's copies beyond the first that cmr leaves: docs/internals/memory.md has the table.
LEFT_ON_RMAT = 0.73  # where it gains least: 0.70, 0.74, 0.73 at 8, 32, 128 parts
LEFT_ON_CITATIONS = 0.21  # ogbn-arxiv: 0.18, 0.20, 0.24
LEFT_ON_PURCHASES = 0.25  # amazon-photo, amazon-computers: 0.19 to 0.25
LEFT_ON_DENSE = 0.32  # tolokers: 0.26, 0.32
GROWTH = 1.5  # below known numbers of parts rows grow with this power of log P: see `exchange_rows`


@dataclass(frozen=True)
class GraphSizes:
    """Args: num_arcs: as trained, both directions of an edge. `rows_per_node`: rows that are sent in one layer and
    direction, over V, by number of parts; `basis`: where they come from, in words."""

    name: str
    num_nodes: int
    num_arcs: int
    num_feats: int
    num_classes: int
    rows_per_node: dict[int, float] = field(default_factory=dict)
    basis: str = ""

    def exchange_rows(self, num_parts: int) -> float:
        """Rows sent by all ranks in one layer and direction: between known numbers of parts linear in log P.

        Notes: below them with a power of log P, and beyond them on the last line.
        """
        if num_parts == 1:
            return 0.0
        known = sorted(self.rows_per_node.items()) or [(2, 0.0)]
        place, (first, least) = math.log2(num_parts), known[0]
        if num_parts < first:
            return self.num_nodes * least * (place / math.log2(first)) ** GROWTH
        known = [(1, 0.0), *known]
        above = next((index for index, (parts, _) in enumerate(known) if parts >= num_parts), len(known) - 1)
        (left, low), (right, high) = known[max(above, 1) - 1], known[max(above, 1)]
        slope = (high - low) / (math.log2(right) - math.log2(left))
        return self.num_nodes * max(low + slope * (place - math.log2(left)), 0.0)


def _rows(copies: dict[int, float], left: float = 1.0) -> dict[int, float]:
    """Rows per vertex of cuts with these copies of it: both roles of a copy beyond the first travel."""
    return {parts: 2 * left * (count - 1) for parts, count in copies.items()}


def _published(
    name: str, sizes: tuple[int, int, int, int], libra: dict[int, float], left: float, like: str
) -> GraphSizes:
    """A graph of (vertices, arcs, features, classes) with Libra's published copies per vertex."""
    words = f"assumed: copies beyond the first as published for Libra (DistGNN, SC'21), of which cmr leaves {left:.0%}"
    return GraphSizes(name, *sizes, _rows(libra, left), f"{words} as on {like}")


RMAT_COPIES = {8: 1.98, 32: 3.25, 128: 5.10}  # Libra, 2^20 vertices, edge factor 16: our own measurement
ARXIV_COPIES = {8: 1.218, 32: 1.420, 128: 1.683}  # cmr: docs/benchmarks/cuts.md
PUBLISHED = {
    graph.name: graph
    for graph in (
        GraphSizes("ogbn-arxiv", 169_343, 2_315_598, 128, 40, _rows(ARXIV_COPIES), "cuts by cmr that we measured"),
        _published(
            "ogbn-products", (2_449_029, 123_718_280, 100, 47),
            {2: 1.49, 4: 2.16, 8: 2.98, 16: 3.90, 32: 4.85, 64: 5.74}, LEFT_ON_PURCHASES, "amazon-computers",
        ),
        GraphSizes(
            "ogbn-proteins", 132_534, 79_122_504, 8, 112, _rows(RMAT_COPIES, LEFT_ON_RMAT),
            "assumed: rows per vertex as of RMAT",
        ),
        _published(
            "reddit", (232_965, 114_615_892, 602, 41), {2: 1.75, 4: 2.94, 8: 4.66, 16: 6.93}, LEFT_ON_DENSE, "tolokers"
        ),
        _published(
            "ogbn-papers100M", (111_059_956, 3_228_124_712, 128, 172), {32: 4.63, 64: 5.63, 128: 6.62},
            LEFT_ON_CITATIONS, "ogbn-arxiv",
        ),
    )
}  # fmt: skip


def sizes_of_parts(manifest: dict[str, Any]) -> GraphSizes:
    """From a partition folder: one measured number of parts."""
    graph, parts, nodes = manifest["graph"], manifest["num_parts"], manifest["num_nodes"]
    sizes = (manifest["name"], nodes, manifest["num_arcs"], graph["num_feats"], graph["num_classes"])
    if parts == 1:
        basis = "assumed: rows per vertex as of RMAT, for the folder has one part"
        return GraphSizes(*sizes, _rows(RMAT_COPIES, LEFT_ON_RMAT), basis)
    basis = f"cut in {parts} parts; other numbers of parts in proportion to their logarithm"
    return GraphSizes(*sizes, {parts: manifest["exchange_rows"] / nodes}, basis)


def sizes_of_source(source: str, data_root: str | None) -> GraphSizes:
    """Of a graph that is here, after sample cuts; of a published one that is not, from its table.

    Raises: InputError where there is neither.
    """
    published = PUBLISHED.get(source)
    try:
        graph = load_graph(source, data_root, findings=Findings())  # sizes only: what is left out is said by partition
    except InputError:
        if published is None:
            raise
        return published
    edges = graph.edge_list("stored" if source.partition(":")[0] in GENERATORS else "both")
    sizes = (graph.name, edges.num_nodes, edges.num_arcs, graph.num_feats, graph.num_classes)
    if edges.num_edges > MOST_SAMPLE_EDGES:
        if published is not None and source in NAMED:
            return published
        basis = f"assumed: rows per vertex as of RMAT ({edges.num_edges:,} edges: no sample cut)"
        return GraphSizes(*sizes, _rows(RMAT_COPIES, LEFT_ON_RMAT), basis)
    rows = {}
    for parts in SAMPLE_PARTS:
        book = PartitionBook(edges, cut_edges(edges, parts, "cmr"))
        rows[parts] = book.exchange_rows / max(edges.num_nodes, 1)
    words = " and ".join(map(str, SAMPLE_PARTS))
    return GraphSizes(*sizes, rows, f"sample cuts in {words} parts; beyond them in proportion to the logarithm")
