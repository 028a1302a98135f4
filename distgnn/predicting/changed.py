"""`dg.predict(…, changed=ids, before=rows)`: only what lies within L hops of a change is computed again.

    path graph, one vertex's features NaN      how far it reaches is L                             depth_of
    changed ids, L hops along arcs             affected: rows that may be others now
    affected and controls, L hops back         the rows that theirs are made of: a graph of its own, on one rank
    controls                                   vertices that cannot be others: rows equal to `before`, or refused

Vertices and edges keep their order in the small graph, and so do sums over arcs: rows are those of a whole pass on one
rank to the bit. Edges at every vertex that messages come from are there, so that its degrees are right.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from distgnn.datasets import GraphData
from distgnn.errors import InputError

PATH = 33  # vertices of the path that measures how far a vertex reaches
CONTROLS = 32
NEAR = {"f4": 1e-5, "f8": 1e-12}  # of the largest number: rows of several ranks, whose sums have another order

Rows = dict[str, np.ndarray]
Compute = Callable[..., Rows]  # a graph's rows on one rank; of (graph, v) where the features of v are no numbers
OTHER_ORDER = "note: the earlier answer was made on several ranks: rows computed again equal a whole pass to rounding"


@dataclass(frozen=True)
class Pass:
    """How rows are made. Args: hops: L, None: it is measured; direction: of the cut; say: takes a note."""

    compute: Compute
    hops: int | None
    direction: str
    say: Callable[[str], None]


class Change:
    """What of an earlier answer a change of the graph reaches.

    Args: changed: ids of vertices whose features or edges are others; vertices behind those of `before` are new.

    Raises: InputError where an answer depends on all vertices, or vertices are taken out.
    """

    def __init__(self, graph: GraphData, changed: Any, before: Rows, how: Pass):
        size, self._count = graph.num_nodes, len(next(iter(before.values())))
        if any(len(one) != self._count for one in before.values()):
            raise InputError("before has results of several lengths: give rows of vertices only")
        ids = _checked_ids(changed, size, self._count)
        self._graph, self._before, self._how = graph, before, how
        self._hops = depth_of(how.compute, graph) if how.hops is None else how.hops
        arcs = arcs_of(graph, how.direction)
        self._affected = _reached(ids, arcs, self._hops, size)
        others = np.flatnonzero(~self._affected)
        self._controls = others[np.linspace(0, len(others) - 1, min(CONTROLS, len(others))).astype(np.int64)]
        wanted = self._affected.copy()
        wanted[self._controls] = True
        self._needed = _reached(np.flatnonzero(wanted), arcs[::-1], self._hops, size)
        self._arcs = int(self._needed[arcs[1]].sum()), len(arcs[1])

    @property
    def is_most(self) -> bool:
        """Is a whole pass less work? It is on all ranks, and its cut may be there."""
        return 2 * self._arcs[0] > self._arcs[1]

    def rows(self) -> Rows:
        """The rows of all vertices. Raises: InputError where `before` is no earlier answer of this model."""
        part, kept = part_of(self._graph, self._needed)
        found = self._how.compute(part)
        places, at = (np.searchsorted(kept, ids) for ids in (self._controls, np.flatnonzero(self._affected)))
        self._check({name: one[places] for name, one in found.items()})
        made = {}
        for name, one in self._before.items():
            new = np.zeros((self._graph.num_nodes - self._count, *one.shape[1:]), one.dtype)
            made[name] = np.concatenate([one, new])
            made[name][self._affected] = found[name][at]
        return made

    def check(self, found: dict[str, Any]) -> None:
        """Raise InputError where the rows [N, …] of a whole pass do not go with `before`."""
        if not all(isinstance(one, np.ndarray) for one in found.values()):
            raise InputError("changed is for rows of vertices, and the model gives more: leave changed out")
        self._check({name: one[self._controls] for name, one in found.items()})

    def _check(self, found: Rows) -> None:
        """Args: found: rows of the controls, which must be what they were."""
        before, exact = self._before, True
        if found.keys() != before.keys() or any(found[name].shape[1:] != one.shape[1:] for name, one in before.items()):
            raise InputError(
                f"before has {_shapes(before)}, and the model gives {_shapes(found)}: give its earlier answer"
            )
        for name, one in before.items():
            exact = _check_controls(found[name], one[self._controls], self._hops) and exact
        if not exact:
            self._how.say(OTHER_ORDER)


def _checked_ids(changed: Any, size: int, count: int) -> np.ndarray:
    ids = np.asarray(changed)
    if ids.size and (ids.ndim != 1 or ids.dtype.kind not in "iu" or ids.min() < 0 or ids.max() >= size):
        raise InputError(f"changed is no list of ids from 0 to {size - 1}: give the vertices that are others now")
    if count > size:
        raise InputError(f"before has {count} rows, and the graph {size} vertices: vertices cannot be taken out")
    return np.union1d(ids.astype(np.int64), np.arange(count, size))


def _shapes(rows: Rows) -> str:
    return ", ".join(f"{name} {list(one.shape[1:])}" for name, one in rows.items())


def _check_controls(found: np.ndarray, before: np.ndarray, hops: int) -> bool:
    """Rows that no change reaches must be what they were: are they, to the bit?"""
    if found.dtype == before.dtype and np.array_equal(found, before, equal_nan=True):
        return True
    limit = NEAR.get(found.dtype.str[1:], 0) * np.abs(before).max(initial=0)
    if found.dtype != before.dtype or not np.allclose(found, before, rtol=0, atol=limit, equal_nan=True):
        raise InputError(
            f"rows that no change reaches within {hops} hops are others than in before: it is of another model or "
            "graph, changed lacks vertices, or the model looks at all vertices; leave changed out"
        )
    return False


def arcs_of(graph: GraphData, direction: str) -> tuple[np.ndarray, np.ndarray]:
    """Sources and targets of all arcs."""
    sources, targets = np.asarray(graph.edges[:, 0]), np.asarray(graph.edges[:, 1])
    if direction == "reversed":
        return targets, sources
    if graph.directed and direction != "both":
        return sources, targets
    return np.concatenate([sources, targets]), np.concatenate([targets, sources])


def _reached(ids: np.ndarray, arcs: tuple[np.ndarray, ...], hops: int, size: int) -> np.ndarray:
    """Which vertices some of them reach within some hops, bool [N]."""
    reached = np.zeros(size, bool)
    reached[ids] = True
    for _ in range(hops):
        reached[arcs[1][reached[arcs[0]]]] = True
    return reached


def part_of(graph: GraphData, needed: np.ndarray) -> tuple[GraphData, np.ndarray]:
    """(the graph of some vertices [N], of their edges and of those at the other ends; the ids of its vertices)."""
    edges = np.asarray(graph.edges)
    places = np.flatnonzero(needed[edges[:, 0]] | needed[edges[:, 1]])
    kept = needed.copy()
    kept[edges[places].reshape(-1)] = True
    ids = np.flatnonzero(kept)

    def some(array: Any, rows: np.ndarray) -> Any:
        return None if array is None else array[rows]

    part = GraphData(
        graph.name,
        len(ids),
        np.searchsorted(ids, edges[places]).reshape(-1, 2),
        graph.directed,
        **{name: some(getattr(graph, name), ids) for name in ("feats", "labels", "node_types", "node_values")},
        **{name: some(getattr(graph, name), places) for name in ("edge_weight", "edge_feats", "edge_types")},
        edge_type_names=graph.edge_type_names,
        node_type_names=graph.node_type_names,
    )
    return part, ids


def depth_of(compute: Compute, graph: GraphData) -> int:
    """How many hops a model's rows reach: on a path whose first vertex has features that are no numbers.

    Raises: InputError where that is no distance: norms and means over vertices, pools.
    """
    random = np.random.default_rng(0)

    def like(array: Any, rows: int) -> Any:
        if array is None:
            return None
        found = np.array(array[:1].toarray() if hasattr(array, "toarray") else array[:1])
        found = np.repeat(found, rows, 0)
        return random.random(found.shape, dtype=np.float32) if found.dtype.kind == "f" else found

    path = np.stack([np.arange(PATH - 1), np.arange(1, PATH)], 1)
    by_vertex = {name: like(getattr(graph, name), PATH) for name in ("feats", "node_types")}
    by_edge = {name: like(getattr(graph, name), PATH - 1) for name in ("edge_weight", "edge_feats", "edge_types")}
    names: dict[str, Any] = {"edge_type_names": graph.edge_type_names, "node_type_names": graph.node_type_names}
    plain = GraphData("path", PATH, path, True, **by_vertex, **by_edge, **names)
    first, second = compute(plain), compute(plain, 0)
    same = [np.isclose(first[name], second[name], rtol=0, atol=0, equal_nan=True) for name in first]
    others = np.any([~one.reshape(PATH, -1).all(1) for one in same], 0)
    if others[-1]:
        raise InputError(
            "changed needs a model whose rows depend on vertices near by, and this one's reach over all of a path of "
            f"{PATH} vertices (a norm or mean over vertices, a pool, many layers): give hops=, or leave changed out"
        )
    return int(np.flatnonzero(others).max(initial=0))
