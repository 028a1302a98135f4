"""A graph from a NetworkX graph, whose attributes become fields where the user names them.

NetworkX has no agreed names (`x` and `y` are often coordinates), so that a field names its attribute: `feats="x"`.
"""

from collections import Counter
from typing import Any

import numpy as np

from distgnn.datasets.fields import SPLITS
from distgnn.datasets.findings.findings import Findings
from distgnn.datasets.names.field_names import OF_EDGES, OF_NODES
from distgnn.datasets.objects.arrays import Fields, from_arrays
from distgnn.datasets.objects.values import SHOWN, as_array, is_missing
from distgnn.errors import InputError

NODE_FIELDS = ("feats", "labels", "node_types", "node_values", "graph_ids", *SPLITS)
EDGE_FIELDS = ("edge_weight", "edge_feats", "edge_types")


def from_networkx(graph: Any, weighted: bool | None, fields: Fields, findings: Findings) -> Fields:
    """See `GraphData.from_networkx`."""
    names = {key: name for key, name in fields.items() if isinstance(name, str) and key in NODE_FIELDS + EDGE_FIELDS}
    _name_the_rest(graph, fields, weighted, findings)
    found: Fields = {"name": str(graph.name or "networkx")}
    if weighted and "edge_weight" not in fields:
        edges = [(item[:2], item[-1]) for item in graph.edges(data="weight", default=1)]
        found["edge_weight"] = _column("edge_weight", "weight", edges)
    for key, name in names.items():
        with findings.reading(key):
            items = list(graph.nodes(data=name, default=None))
            if key in EDGE_FIELDS:
                items = [(item[:2], item[-1]) for item in graph.edges(data=name, default=None)]
            found[key] = _column(key, name, items)
    number = {node: place for place, node in enumerate(graph)}
    pairs = np.array([(number[u], number[v]) for u, v in graph.edges()], dtype=np.int64).reshape(-1, 2)
    found |= {key: value for key, value in fields.items() if key not in names}
    return from_arrays((pairs[:, 0], pairs[:, 1]), len(number), graph.is_directed(), found, findings)


def _column(key: str, name: str, items: list[tuple[Any, Any]]) -> Any:
    """The values of one attribute as an array. Raises: InputError where some have none, or they make no column."""
    missing = [item for item, value in items if is_missing(value)]
    if missing and (key != "labels" or len(missing) == len(items)):
        how_many = f" ({len(missing)} of {len(items)} have none)" if key != "labels" else ""
        raise InputError(
            f"{key}: {missing[0]!r} has no attribute {name!r}{how_many}; every one needs it, or give an array instead"
        )
    values = np.empty(len(items), dtype=object)
    for place, (_, value) in enumerate(items):
        values[place] = value
    try:
        column = as_array(values, f"{key}: the attribute {name!r}")
    except InputError as error:
        raise InputError(str(error).replace(": values of", " has values of")) from None
    if column.dtype.kind in "US" and key not in ("labels", "node_types", "edge_types"):
        raise InputError(f"{key}: the attribute {name!r} is text, as {str(values[0])[:SHOWN]!r}: make numbers of it")
    return column


def _name_the_rest(graph: Any, fields: Fields, weighted: bool | None, findings: Findings) -> None:
    """Write down every attribute that nothing takes, with the argument that would."""
    for kind, items, known, usual in (
        ("", graph.nodes(data=True), NODE_FIELDS, OF_NODES),
        ("edge ", graph.edges(data=True), EDGE_FIELDS, OF_EDGES),
    ):
        taken = {fields[key] for key in known if isinstance(fields.get(key), str)}
        counts = Counter(name for item in items for name in item[-1])
        for name, count in counts.items():
            field = next((field for field, names in usual.items() if name in names and field in known), None)
            if name in taken or (field in fields and not isinstance(fields[str(field)], str)):
                continue
            if kind and name == "weight":
                if weighted is None:
                    findings.add("left out", "weight", "edge attribute weight (take it with weighted=True)", count)
                continue
            how = f" (take it with {field}={name!r})" if field and field not in fields else ""
            findings.add("left out", str(name), f"{kind}attribute {name}{how}", count)
