"""A graph from a table of edges as pandas and polars have it: two columns are the ends, others are fields."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from distgnn.datasets.findings.findings import Findings
from distgnn.datasets.names.field_names import OF_EDGES, PYG_NAMES
from distgnn.datasets.objects.arrays import Fields, from_arrays
from distgnn.datasets.objects.columns import take_columns
from distgnn.errors import InputError

ENDS = (
    ("source", "target"), ("src", "dst"), ("u", "v"), ("from", "to"), ("head", "tail"), ("source_id", "target_id"),
    ("src_id", "dst_id"), ("row", "col"), ("i", "j"), ("start", "end"), ("source", "destination"), ("from_id", "to_id"),
    ("source_id", "destination_id"), ("FromNodeId", "ToNodeId"), (0, 1), ("0", "1"),
)  # fmt: skip


def is_frame(table: Any) -> bool:
    """Whether this is a table with named columns."""
    return hasattr(table, "columns") and hasattr(table, "__getitem__") and hasattr(table, "to_numpy")


def ends_of(columns: Sequence[Any]) -> tuple[Any, Any] | None:
    """The two columns whose names say that they are the ends of edges; None where there are none."""
    by_name = {str(name).strip().lower() if isinstance(name, str) else name: name for name in columns}
    for pair in ENDS:
        first, second = (end.lower() if isinstance(end, str) else end for end in pair)
        if first in by_name and second in by_name:
            return by_name[first], by_name[second]
    return None


def in_lower_case(frame: dict[str, Any]) -> dict[str, Any]:
    """The columns by names in lower case (`Weight` of Gephi's tables); one whose name is taken keeps its own."""
    return {low if (low := name.lower()) not in frame else name: column for name, column in frame.items()}


def from_frame(table: Any, num_nodes: int | None, directed: bool, fields: Fields, findings: Findings) -> Fields:
    """The edges of a table with one row per edge.

    Raises: InputError where it does not say which columns are the ends.
    """
    columns = list(table.columns)
    ends = ends_of(columns)
    if len(set(map(str, columns))) != len(columns):
        raise InputError(f"edges: this table has two columns of one name ({', '.join(map(str, columns))})")
    if ends is None and len(columns) == 2:
        ends = columns[0], columns[1]
        findings.add("renamed", "edges", f"edges ← {columns[0]}, {columns[1]}", len(table))
    if ends is None:
        raise InputError(
            f"edges: which columns are the ends? this table has {', '.join(map(str, columns)) or 'none'}: call them "
            "source and target, or give (table[a], table[b])"
        )
    frame = in_lower_case({str(name): table[name] for name in columns if name not in ends})
    found = take_columns(frame, OF_EDGES, PYG_NAMES | {"edge_weight": "weight"}, findings, fields)
    sources, targets = (np.asarray(table[end].to_numpy()) for end in ends)
    return from_arrays((sources, targets), num_nodes, directed, {"name": "table", **found, **fields}, findings)
