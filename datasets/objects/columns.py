"""Columns of vertices or edges, by the names that users give them: which become fields, and which are left out.

Legend: N vertices, E edges.
"""

from collections.abc import Mapping
from typing import Any

from distgnn.datasets.findings.findings import Findings

MASK_WORDS = ("mask", "is_")


def take_columns(
    frame: Mapping[str, Any],
    fields: Mapping[str, tuple[str, ...]],
    usual: Mapping[str, str],
    findings: Findings,
    decided: Any = (),
) -> dict[str, Any]:
    """Field -> the column of a frame that gives it.

    Args:
        frame: name -> column.
        fields: field -> names that it may have.
        usual: field -> its name in this library, which comes first and is taken without a word.
        decided: fields that the user gives, or leaves out by None: their columns are left alone.
    Notes: columns that nothing takes are named, with their shape; so is the second of two for one field.
    """
    found: dict[str, Any] = {}
    used: set[str] = set()
    for field, names in fields.items():
        present = [name for name in (usual.get(field), *names) if name is not None and name in frame]
        if not present:
            continue
        name = present[0]
        if field in decided:
            used.update(one for one in present if one == usual.get(field))
            continue
        if name in used:
            continue
        used.add(name)
        found[field] = frame[name]
        shown = f"{field} ← {name}"
        findings.add("read" if name in (usual.get(field), "_TYPE") else "renamed", field, shown, _rows(frame[name]))
    for name, column in frame.items():
        if name not in used:
            leave_out(findings, name, column)
    return found


def leave_out(findings: Findings, name: str, column: Any, why: str = "") -> None:
    """Write down a column that is not taken."""
    shape = getattr(column, "shape", None)
    kind = f"{list(shape)}" if shape is not None else type(column).__name__
    findings.add("left out", name, f"{name} ({why or kind})", _rows(column))


def _rows(column: Any) -> int:
    shape = getattr(column, "shape", None)
    return int(shape[0]) if shape is not None and len(shape) else 0


def is_mask_name(name: str) -> bool:
    """Whether a column of this name is a mask, whatever numbers it has."""
    return any(word in name for word in MASK_WORDS)
