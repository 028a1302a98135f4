"""A graph of two tables: one of edges, which name vertices, and one of vertices.

Legend: E edges, K names that they hold, N vertices.
"""

from pathlib import Path
from typing import Any

import numpy as np

from distgnn.datasets.files.edge_text import find_name, read_edge_text
from distgnn.datasets.files.node_table import ROLES, read_nodes
from distgnn.datasets.files.parquet import read_parquet
from distgnn.datasets.findings.findings import Findings
from distgnn.datasets.names.field_names import OF_EDGES
from distgnn.datasets.names.renumber import places_of, renumber
from distgnn.datasets.objects.arrays import edges_of_frame, is_frame
from distgnn.datasets.text.table import is_table
from distgnn.errors import GraphFormatError, InputError


def read_two_tables(edges: Any, content: dict[str, Any], findings: Findings) -> tuple[np.ndarray, dict[str, Any]]:
    """Edges [E, 2] and fields, as `GraphData.from_arrays` takes them.

    Args: edges: a file of text or Parquet, a frame, or names as `dg.renumber` takes them; content: "nodes", and the
        names of its columns "id", "label" and "split", which are taken out.
    Raises: InputError with file, row and column.
    """
    asked = {role: content.pop(role, None) for role in ROLES}
    fields = read_nodes(content.pop("nodes"), asked, findings)
    path = Path(edges) if isinstance(edges, str | Path) else None
    of_edges: dict[str, Any] = {}
    if path is not None and is_table(path):
        ours = Findings(findings.collect)
        graph = read_edge_text(path, ours, True)
        findings += [one for one in ours if one.severity != "understood"]  # there, vertices are those that edges name
        pairs, names = graph.edges, graph.node_names
        of_edges = {name: found for name in OF_EDGES if (found := getattr(graph, name)) is not None}
        order = "other" if graph.arc_order == "sorted" else graph.arc_order  # of names, not of rows
        of_edges |= {"directed": graph.directed, "arc_order": order, "name": graph.name}
    else:
        if path is not None and path.suffix != ".parquet":
            raise InputError(f"edges: {path} is no table: beside nodes .csv, .tsv, .txt (also as .gz) or .parquet")
        try:
            frame = edges if path is None else read_parquet(path)
            of_columns = path is not None or is_frame(frame)
            ends, of_edges = edges_of_frame(frame, findings) if of_columns else (frame, {})
            pairs, names = renumber(ends)
        except GraphFormatError:
            raise
        except InputError as error:
            raise error if path is None else GraphFormatError(f"{path}: {error}") from None
        of_edges |= {} if path is None else {"name": path.stem}
    places, missing = places_of(*alike(names, fields["node_names"]))  # type: ignore[arg-type]
    if missing.any():
        unknown = np.flatnonzero(missing)
        rows = np.isin(pairs, unknown).any(1)
        row = int(np.argmax(rows))
        name = names[pairs[row][np.isin(pairs[row], unknown)][0]].item()  # type: ignore[index]
        place = f"{path or 'edges'}: row {row}"
        if path is not None and is_table(path):
            place = f"{path}: line {find_name(path, str(name))}"
        raise GraphFormatError(
            f"{place}: {name!r} is in no row of the nodes ({int(rows.sum())} such edges): add it there, or take the "
            "edge out"
        )
    return places[pairs], of_edges | fields | {"num_nodes": len(fields["node_names"])}


def alike(names: np.ndarray, ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Names of edges and of vertices as one kind: texts, where either are; 7 and "7" are one name."""
    both_numbers = names.dtype.kind in "iu" and ids.dtype.kind in "iu"
    if both_numbers and np.result_type(names, ids).kind != "f":
        return names, ids
    return names.astype(str), ids.astype(str)
