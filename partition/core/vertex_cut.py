"""A cut: which part computes each arc, and which part owns each vertex. The two are independent.

Shapes: M edges of the edge list, N vertices, P parts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from distgnn.errors import InputError
from distgnn.partition.core.edges import Edges
from distgnn.partition.core.shares import part_shares


@dataclass(frozen=True, repr=False)
class VertexCut:
    """Any assignment of arcs and owners to parts: vertex cuts, edge cuts and hybrids alike.

    Args:
        num_parts: number of parts P.
        edge_part: [M] int, the part of each edge's forward arc (and its reverse arc, unless `reverse_part` is given).
        owner: [N] int, the part that owns each vertex. It need not hold an arc of the vertex.
        reverse_part: [M] int or None, the part of the reverse arc of each edge of a two-way edge list
            (ignored for self-loops, which are one arc).
        order: [N] int or None, the key by which owned rows are sorted inside their section (ties: global id).
            None sorts by global id.
        capacities: [P] relative speeds of the ranks, or None for equal ones: every balance is against these shares.
    """

    num_parts: int
    edge_part: np.ndarray
    owner: np.ndarray
    reverse_part: np.ndarray | None = None
    order: np.ndarray | None = None
    capacities: np.ndarray | None = None

    def __repr__(self) -> str:
        given = [name for name in ("reverse_part", "order", "capacities") if getattr(self, name) is not None]
        counts = [f"num_parts={self.num_parts}", f"num_edges={len(self.edge_part)}", f"num_nodes={len(self.owner)}"]
        return f"VertexCut({', '.join(counts + given)})"

    @property
    def shares(self) -> np.ndarray:
        """float64 [P] that sum to 1: what part of each load a part is meant to have."""
        return part_shares(self.num_parts, self.capacities)

    def check(self, edge_list: Edges) -> VertexCut:
        """Return self if the cut fits `edge_list`; raise `InputError` saying what does not."""
        if not isinstance(self.num_parts, int | np.integer) or self.num_parts < 1:
            raise InputError(f"a cut needs at least 1 part, not {self.num_parts!r}")
        edges, nodes = len(edge_list.src), edge_list.num_nodes
        _check_parts("edge_part", self.edge_part, edges, self.num_parts)
        _check_parts("owner", self.owner, nodes, self.num_parts)
        if self.reverse_part is not None:
            if not edge_list.two_way:
                raise InputError("reverse_part needs a two-way edge list: this one has a single arc per edge")
            _check_parts("reverse_part", self.reverse_part, edges, self.num_parts)
        part_shares(self.num_parts, self.capacities)
        if self.order is not None:
            _check_ints("order", self.order, nodes)
        return self


def _check_ints(name: str, values: np.ndarray, length: int) -> None:
    if not isinstance(values, np.ndarray) or values.dtype.kind not in "iu" or values.shape != (length,):
        found = f"{values.dtype} {values.shape}" if isinstance(values, np.ndarray) else type(values).__name__
        raise InputError(f"{name} must be an integer array of shape ({length},), not {found}")


def _check_parts(name: str, values: np.ndarray, length: int, num_parts: int) -> None:
    _check_ints(name, values, length)
    # Kernels index by these values without a check.
    if length and (values.min() < 0 or values.max() >= num_parts):
        raise InputError(
            f"{name} must name parts 0 to {num_parts - 1}, but it has values from {values.min()} to {values.max()}"
        )


def part_dtype(num_parts: int) -> type[Any]:
    """The smallest signed integer that holds a part id: edge arrays are the largest ones a cut has."""
    return np.int16 if num_parts <= np.iinfo(np.int16).max else np.int32
