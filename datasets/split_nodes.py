"""A random split of the vertices of a graph that has none, for training, validation and test."""

from dataclasses import replace
from typing import TypeVar

import numpy as np

from distgnn.datasets.fields import SPLITS, GraphFields
from distgnn.datasets.objects.values import in_rows
from distgnn.errors import InputError

Graph = TypeVar("Graph", bound=GraphFields)


def parse_split(text: str) -> tuple[float, float, float]:
    """Shares of train, valid and test from "0.6,0.2,0.2". Raises: InputError."""
    try:
        train, valid, test = (float(word) for word in str(text).split(","))
    except ValueError:
        raise InputError(f"the split is {text!r}: expected shares of train, valid and test, as 0.6,0.2,0.2") from None
    return check_split((train, valid, test))


def check_split(shares: tuple[float, float, float]) -> tuple[float, float, float]:
    """These shares. Raises: InputError unless each is from 0 to 1, some train, and they are at most 1 together."""
    if not all(0 <= share <= 1 for share in shares) or not 0 < shares[0] or not sum(shares) <= 1 + 1e-9:
        shown = ", ".join(f"{share:g}" for share in shares)
        raise InputError(
            f"the split is {shown}: expected three shares from 0 on, for train more than 0, at most 1 in all"
        )
    return shares


def stratifies(graph: GraphFields) -> bool:
    """Whether a random split has every class in its share: where a vertex has one label."""
    return graph.labels is not None and not graph.multilabel


def split_nodes(graph: Graph, shares: tuple[float, float, float], seed: int) -> Graph:
    """See `GraphData.split_nodes`."""
    check_split(shares)
    there = [name for name in SPLITS if getattr(graph, name) is not None]
    if there:
        raise InputError(f"graph {graph.name!r} has a split already ({', '.join(there)}): set these to None first")
    chosen = np.ones(graph.num_nodes, dtype=bool)
    if graph.labels is not None:
        chosen = graph.labelled
    elif graph.node_values is not None:
        chosen = ~in_rows(np.isnan(np.asarray(graph.node_values, np.float64)))
    ids = np.flatnonzero(chosen)
    order = np.random.default_rng([seed, 0x73706C69]).permutation(ids)
    if graph.labels is not None and stratifies(graph):  # class by class, in random order within each
        order = order[np.argsort(graph.labels[order], kind="stable")]
    ends = [round(float(end) * len(ids)) for end in np.cumsum(shares)]
    parts = []
    for size in np.diff([0, *ends]):
        # At even distances: of a run of m entries, m size / len(order) up to rounding.
        places = np.arange(len(order) + 1, dtype=np.int64) * int(size) // max(len(order), 1)
        chosen = places[1:] > places[:-1]
        parts.append(order[chosen])
        order = order[~chosen]
    if len(parts[0]) == 0:
        raise InputError(f"graph {graph.name!r} has {len(ids)} labelled vertices: too few for this split")
    return replace(graph, **{name: np.sort(part) for name, part in zip(SPLITS, parts, strict=True)})  # type: ignore[arg-type]
