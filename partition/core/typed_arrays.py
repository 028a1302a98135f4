"""Columns of types and relations in a part: their files, what a manifest says of them, and what a LocalGraph has.

A column is described by a list: its dtype and the widths of a row, or "csr" and the width, or "text" and the bytes.

Shapes: O owned rows of a part, Ot of them of type t; Ar its arcs of relation r; D feature width.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse


class OneWidthRows:
    """Features of owned rows of all types, float32 [O, D]; zeros where a type has none. Read a block at a time.

    Args: node_types: [O]; tables: of each type, dense or CSR, or None.
    """

    def __init__(self, node_types: np.ndarray, tables: list[Any], width: int) -> None:
        self._types, self._tables = np.asarray(node_types), tables
        self._places = places_in(self._types)
        self.shape, self.dtype, self.ndim = (len(node_types), width), np.dtype(np.float32), 2

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> np.ndarray:
        types, places = self._types[rows], self._places[rows]
        out = np.zeros((len(types), self.shape[1]), dtype=self.dtype)
        for number, table in enumerate(self._tables):
            if table is not None and (mine := types == number).any():
                some = table[places[mine]]
                out[mine] = some.toarray() if sparse.issparse(some) else some
        return out

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.asarray(self[slice(None)], dtype=dtype)


def places_in(keys: np.ndarray) -> np.ndarray:
    """int64 [n]: how many entries before each one have its key."""
    order = np.argsort(keys, kind="stable")
    counts = np.bincount(keys, minlength=1)
    places = np.empty(len(keys), dtype=np.int64)
    places[order] = np.arange(len(keys)) - np.repeat(np.cumsum(counts) - counts, counts)
    return places


def typed_fields(graph: dict[str, Any], owned: int, arrays: dict[str, Any]) -> dict[str, Any]:
    """The fields of a LocalGraph that follow from typed columns: these, and their views over all owned rows."""
    if not graph.get("types"):
        return {}
    typed: dict[str, dict[str, Any]] = {kind: {} for kind in graph["types"]}
    relation_columns: dict[int, dict[str, Any]] = {number: {} for number in range(len(graph["relations"]))}
    for number, kind in enumerate(graph["types"]):
        for name, kinds in graph["typed"].get(kind, {}).items():
            typed[kind][name] = column(f"type_{number}_{name}", kinds, arrays)
    for number, columns in enumerate(graph["relation_columns"]):
        for name, kinds in columns.items():
            relation_columns[number][name] = column(f"relation_{number}_{name}", kinds, arrays)
    views = _views(graph, owned, arrays["node_types"], typed)
    return {"typed": typed, "relation_columns": relation_columns, **views}


def column(name: str, kinds: list[Any], arrays: dict[str, Any]) -> Any:
    """A column from the arrays of its files."""
    if kinds[0] == "csr":
        indptr, indices, data = (arrays[f"{name}_{what}"] for what in ("indptr", "indices", "data"))
        # Filled afterwards: the constructor would copy the mapped arrays and check them again.
        matrix = sparse.csr_matrix((len(indptr) - 1, kinds[1]), dtype=np.float32)
        matrix.indptr, matrix.indices, matrix.data = indptr, indices, data
        return matrix
    if kinds[0] == "text":
        rows = np.ascontiguousarray(arrays[name])
        return np.char.decode(rows.view(f"S{rows.shape[1]}").reshape(-1), "utf-8")
    return arrays[name]


def _views(graph: dict[str, Any], owned: int, node_types: np.ndarray, typed: dict[str, Any]) -> dict[str, Any]:
    """Splits over all owned rows; labels and values where one type has them; features where all have one width."""
    found: dict[str, Any] = {}
    unknown = {"labels": -1, "values": np.nan, "train_mask": False, "valid_mask": False, "test_mask": False}
    for name, value in unknown.items():
        having = [number for number, kind in enumerate(graph["types"]) if name in typed[kind]]
        if len(having) != 1 and not name.endswith("_mask"):
            continue
        rows = [typed[graph["types"][number]][name] for number in having]
        shape, dtype = (rows[0].shape[1:], rows[0].dtype) if rows else ((), np.dtype(bool))
        dtype = np.promote_types(dtype, np.int8) if name == "labels" else dtype
        whole = np.full((owned, *shape), value, dtype)
        for number, some in zip(having, rows, strict=True):
            whole[node_types == number] = some
        whole = whole.reshape(owned, -1) if name == "values" else whole  # [O, T] as of other graphs
        found["node_values" if name == "values" else name] = whole
    if graph["num_feats"]:
        tables = [typed[kind].get("feats") for kind in graph["types"]]
        found["feats"] = OneWidthRows(node_types, tables, graph["num_feats"])
    return found
