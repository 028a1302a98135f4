"""What the arrays of a part hold, from the graph and the cut: by the table of partition/core/part_arrays.py.

Shapes: N vertices, O owned rows of a part.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from distgnn.datasets import GraphData
from distgnn.datasets.arc_data import arc_feats, arc_relations
from distgnn.datasets.edge_list import EdgeList
from distgnn.datasets.links.part_edges import part_edge_splits
from distgnn.partition.core.local_graph import LocalGraph
from distgnn.partition.core.part_arrays import PartArray, arrays_of
from distgnn.partition.folder.name_rows import name_rows


class Rows:
    """Rows [n, …] that are made a block at a time: all of them may be larger than memory.

    Args: take: makes the rows of some ids; ids: [n]; width: the shape of a row.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    def __init__(self, take: Callable[[np.ndarray], Any], ids: np.ndarray, width: tuple[int, ...], dtype: Any) -> None:
        self._take, self._ids = take, ids
        self.shape, self.dtype = (len(ids), *width), np.dtype(dtype)

    def __len__(self) -> int:
        return len(self._ids)

    def __getitem__(self, rows: slice) -> np.ndarray:
        ids = self._ids[rows]
        return np.asarray(self._take(ids), dtype=self.dtype).reshape(len(ids), *self.shape[1:])


def part_data(
    local: LocalGraph, graph: GraphData, edge_list: EdgeList, masks: dict[str, np.ndarray]
) -> dict[str, np.ndarray | Rows]:
    """The arrays of a part by name, in the order of the table.

    Args: local: from `build_local`, with the `graph` section of the manifest; masks: split -> bool [N].
    """
    owned, arcs, section = local.global_ids[: local.num_owned], local.arc_ids, local.graph
    made: dict[str, Any] = {f"{split}_mask": mask[owned] for split, mask in masks.items()}
    made |= part_edge_splits(graph, owned)
    if section["sparse_feats"]:  # three arrays, each mapped when it is read
        rows: Any = graph.feats[owned]
        made |= {f"feats_{name}": getattr(rows, name) for name in ("indptr", "indices", "data")}
    if section.get("name_bytes") is not None:
        made["node_names"] = name_rows(graph.node_names[owned], section["name_bytes"])  # type: ignore[index]
    if graph.edge_feats is not None:
        made["edge_feats"] = Rows(partial(arc_feats, graph, edge_list), arcs, (graph.num_edge_feats,), np.float32)
    if graph.edge_types is not None:
        made["edge_types"] = Rows(partial(arc_relations, graph, edge_list), arcs, (), np.int32)
    return {array.name: _of_dtype(array, made, local, graph, owned) for array in arrays_of(section)}


def _of_dtype(
    array: PartArray, made: dict[str, Any], local: LocalGraph, graph: GraphData, owned: np.ndarray
) -> np.ndarray | Rows:
    """What is made already, what the cut has made, or the rows of a field of the graph; in a dtype of the table."""
    if array.name in made:
        values = made[array.name]
    elif array.field is None:
        values = _of_cut(local, array.name)
    else:
        values = getattr(graph, array.field)
    dtype = np.dtype(values.dtype.name if values.dtype.name in array.dtypes else array.dtypes[0])
    if array.name in made or array.field is None:
        return values if values.dtype == dtype else values.astype(dtype)
    missing = len(array.shape.split()) - len(values.shape)  # values of a regression may be [N]
    return Rows(values.__getitem__, owned, (1,) * missing + values.shape[1:], dtype)


def _of_cut(local: LocalGraph, name: str) -> np.ndarray:
    base, _, what = name.rpartition("_")
    if base in local.blocks:
        return getattr(local.blocks[base], what)
    return getattr(local.plan if base in ("broadcast", "reduce") else local, name)
