"""What a file was understood as: both arcs of an edge, or one, and the line that says so.

Legend: N vertices, E edges or arcs.
"""

from pathlib import Path
from typing import Any

import numpy as np

from distgnn.datasets.findings.findings import Findings
from distgnn.datasets.graph_data import GraphData
from distgnn.datasets.pairs import halve
from distgnn.errors import GraphFormatError, InputError

FROM_ONE = "ids from 1 in the file: vertex 0 is its 1"


def name_of(path: Path) -> str:
    """A graph's name by its file's: without .gz and what says the kind, and KONECT's `out.`."""
    name = path.name.removesuffix(".gz")
    return (name.removeprefix("out.") if name.startswith("out.") else Path(name).stem) or path.name


def make_graph(
    path: Path,
    ends: tuple[np.ndarray, np.ndarray],
    num_nodes: int,
    findings: Findings,
    fields: dict[str, Any],
    *,
    directed: bool = True,
    ids_from: str = "ids from 0",
) -> GraphData:
    """The checked graph of arcs, or of edges that stand for both arcs, with the line that says what it is.

    Args: fields: of vertices, and of the rows of `ends`; directed: by the file's own word; where all opposite arcs are
        there it is undirected all the same. ids_from: a word on ids.
    """
    columns: dict[str, Any] = {
        name: fields[name] for name in ("edge_weight", "edge_feats", "edge_types") if name in fields
    }
    sources, targets = ends
    both = np.count_nonzero(sources < targets) == np.count_nonzero(sources > targets) > 0
    how = "directed" if directed else "undirected"
    if both:
        try:
            kept, halved = halve(sources, targets, num_nodes, columns)
        except InputError:  # some arc has no opposite, or another weight
            pass
        else:
            sources, targets, fields, directed = sources[kept], targets[kept], fields | halved, False
            how = "undirected, stored both ways"
    try:
        graph = GraphData.from_arrays((sources, targets), num_nodes, directed, findings, name=name_of(path), **fields)
    except InputError as error:
        raise GraphFormatError(f"{path}: {error}") from None
    say_what(graph, path, how, ids_from)
    return graph


def say_what(graph: GraphData, path: Path, how: str, ids_from: str = "ids from 0") -> None:
    """Write down the line that says what a file was understood as; one sort of the edges."""
    if graph.findings.wrong:
        return
    counts = graph.counts()
    arcs = graph.num_edges if graph.directed else 2 * graph.num_edges - counts["self_loops"]
    paired = f", {2 * counts['reciprocal']:,} with their opposite" if graph.directed and counts["reciprocal"] else ""
    parts = [f"{graph.num_nodes:,} vertices, {graph.num_edges:,} edges ({arcs:,} arcs{paired})", how, ids_from]
    parts.append("weights" if graph.edge_weight is not None else "no weights")
    unusual = [f"{counts[name]:,} {name.replace('_', '-')}" for name in ("duplicates", "self_loops", "isolated")]
    graph.findings.add("understood", "graph", f"{path.name}: {', '.join(parts)}; {', '.join(unusual)}")
