"""Hold out edges of a graph for link prediction: those of some pairs of vertices, chosen at random.

Legend: N vertices, E edges, G pairs of vertices that edges join.
"""

from dataclasses import replace
from typing import TypeVar

import numpy as np

from distgnn.datasets.fields import GraphFields
from distgnn.datasets.links.check import has_edge_splits
from distgnn.datasets.pairs import pair_keys, undirected_keys
from distgnn.errors import InputError

Graph = TypeVar("Graph", bound=GraphFields)
MOST_ROUNDS = 200  # of drawing negatives: what is left then is a graph of nearly all edges
PER_EDGE = ("edge_weight", "edge_feats", "edge_types")


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
