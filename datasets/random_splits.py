"""Random splits of a graph that has none: of its vertices, or of its edges for link prediction.

Legend: N vertices, E edges, G pairs of vertices that edges join.
"""

from dataclasses import replace
from typing import TypeVar

import numpy as np

from distgnn.datasets.fields import SPLITS, GraphFields
from distgnn.datasets.link_splits import has_edge_splits
from distgnn.datasets.objects.values import in_rows
from distgnn.datasets.pairs import pair_keys, undirected_keys
from distgnn.errors import InputError

Graph = TypeVar("Graph", bound=GraphFields)
MOST_ROUNDS = 200  # of drawing negatives: what is left then is a graph of nearly all edges
PER_EDGE = ("edge_weight", "edge_feats", "edge_types")


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


def parse_shares(text: str) -> tuple[float, float]:
    """Shares of validation and test edges from "0.1,0.2". Raises: InputError."""
    try:
        valid, test = (float(word) for word in str(text).split(","))
    except ValueError:
        raise InputError(f"the link split is {text!r}: expected shares of valid and test edges, as 0.05,0.1") from None
    check_shares(valid, test)
    return valid, test


def check_shares(valid: float, test: float) -> None:
    """Raise InputError unless these shares leave edges for training."""
    if not (valid >= 0 and test >= 0 and 0 < valid + test < 1):
        raise InputError(
            f"the link split holds out {valid:g} and {test:g} of the edges: expected two shares from 0 on, "
            "together more than 0 and less than 1"
        )


def split_links(graph: Graph, valid: float, test: float, seed: int, either_way: bool) -> Graph:
    """See `GraphData.split_links`; either_way: all edges between two vertices, whatever their order, go together."""
    check_shares(valid, test)
    if graph.types:
        raise InputError(f"graph {graph.name!r} has relations: hold edges of one out yourself, as a relation less")
    if has_edge_splits(graph):
        raise InputError(f"graph {graph.name!r} has a split of its edges already")
    make = undirected_keys if either_way or not graph.directed else pair_keys
    sources, targets = np.asarray(graph.edges[:, 0]), np.asarray(graph.edges[:, 1])
    joined = np.flatnonzero(sources != targets)  # a self-loop is no link
    keys, first, group = np.unique(
        make(sources[joined], targets[joined], graph.num_nodes), return_index=True, return_inverse=True
    )
    random = np.random.default_rng([seed, 0x6C696E6B])
    order = random.permutation(len(keys))
    num_test, num_valid = int(test * len(keys)), int(valid * len(keys))
    if (valid and not num_valid) or (test and not num_test) or num_valid + num_test >= len(keys):
        raise InputError(f"graph {graph.name!r} joins {len(keys)} pairs of vertices: too few for this link split")
    chosen = {"test": order[:num_test], "valid": order[num_test : num_test + num_valid]}
    removed = np.zeros(len(keys), dtype=bool)
    fields: dict[str, np.ndarray] = {}

    def non_edges(count: int) -> np.ndarray:
        """[count, 2] pairs of different vertices that no edge of the whole graph joins."""
        found: list[np.ndarray] = []
        missing = count
        for _ in range(MOST_ROUNDS):
            pairs = random.integers(0, graph.num_nodes, (missing + missing // 8 + 8, 2))
            drawn = make(pairs[:, 0], pairs[:, 1], graph.num_nodes)
            place = np.minimum(np.searchsorted(keys, drawn), len(keys) - 1)
            good = (keys[place] != drawn) & (pairs[:, 0] != pairs[:, 1])
            found.append(pairs[good][:missing])
            missing -= len(found[-1])
            if missing == 0:
                return np.concatenate(found)
        raise InputError(f"graph {graph.name!r} joins nearly all pairs of vertices: there are no negatives to draw")

    for split, groups in chosen.items():
        if len(groups):
            removed[groups] = True
            fields[f"{split}_edges"] = np.asarray(graph.edges[joined[first[groups]]], dtype=np.int64)
            fields[f"{split}_negatives"] = non_edges(len(groups))
    kept = np.ones(graph.num_edges, dtype=bool)
    kept[joined[removed[group.reshape(-1)]]] = False
    fields["edges"] = np.asarray(graph.edges[kept])
    fields |= {name: np.asarray(getattr(graph, name)[kept]) for name in PER_EDGE if getattr(graph, name) is not None}
    return replace(graph, **fields)  # type: ignore[arg-type]
