"""The graphs of the cases, made from a seed: the same in the plain library and, cut at random, on ranks."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

from distgnn.datasets import GraphData

NUM_CLASSES, WIDTH, EDGE_WIDTH, RELATIONS = 4, 8, 5, 3


def web() -> GraphData:
    """One-way arcs with weights, features and relations: a hub, self-loops, duplicates, isolated vertices."""
    random, num_nodes, num_edges = np.random.default_rng(3), 61, 300
    edges = random.integers(0, num_nodes - 4, (num_edges, 2))
    edges[:50, 1] = 3
    edges[50:90, 0] = 5
    edges[:3] = edges[3:6]
    edges[6] = (7, 7)
    return GraphData.from_arrays(
        edges,
        num_nodes=num_nodes,
        directed=True,
        edge_weight=(0.5 + random.random(num_edges)).astype(np.float32),
        edge_feats=random.standard_normal((num_edges, EDGE_WIDTH)).astype(np.float32),
        edge_types=random.integers(0, RELATIONS, num_edges),
        node_types=random.integers(0, 2, num_nodes),
        **_columns(random, num_nodes),
    )


def pages() -> GraphData:
    """Undirected, simple, without self-loops; every class has neighbours of its own."""
    random, num_nodes = np.random.default_rng(5), 83
    columns = _columns(random, num_nodes)
    labels = columns["labels"]
    pairs = random.integers(0, num_nodes, (900, 2))
    alike = (labels[pairs[:, 0]] == labels[pairs[:, 1]]) | (random.random(len(pairs)) < 0.2)
    pairs = np.unique(np.sort(pairs[alike & (pairs[:, 0] != pairs[:, 1])], 1), axis=0)
    return GraphData.from_arrays(pairs, num_nodes=num_nodes, directed=False, **columns)


def relations() -> GraphData:
    """One-way arcs with relations only: no features."""
    random, num_nodes, num_edges = np.random.default_rng(7), 57, 260
    columns = _columns(random, num_nodes)
    del columns["feats"]
    edges = random.integers(0, num_nodes, (num_edges, 2))
    types = random.integers(0, RELATIONS, num_edges)
    return GraphData.from_arrays(edges, num_nodes=num_nodes, directed=True, edge_types=types, **columns)


WORLDS = {"web": web, "pages": pages, "relations": relations}


def _columns(random: np.random.Generator, num_nodes: int) -> dict[str, Any]:
    train, valid, test = np.split(random.permutation(num_nodes), [num_nodes // 2, 3 * num_nodes // 4])
    return {
        "feats": random.standard_normal((num_nodes, WIDTH)).astype(np.float32),
        "labels": random.integers(0, NUM_CLASSES, num_nodes),
        "train": np.sort(train),
        "valid": np.sort(valid),
        "test": np.sort(test),
    }


def ids_of(data: GraphData) -> SimpleNamespace:
    """Plain tensors that a script has beside its graph: ids of its splits, pairs of vertices, a few ids in no order."""
    random, count = np.random.default_rng(11), data.num_nodes
    pairs = torch.from_numpy(np.asarray(data.edges)[:40].T.astype(np.int64).copy())
    return SimpleNamespace(
        num_nodes=count,
        num_arcs=data.edge_list().num_arcs,
        train=torch.from_numpy(np.asarray(data.train)),
        valid=torch.from_numpy(np.asarray(data.valid)),
        test=torch.from_numpy(np.asarray(data.test)),
        some=torch.from_numpy(random.integers(0, count, 17)),
        pos=pairs,
        neg=torch.from_numpy(random.integers(0, count, (2, 40))),
        perm=torch.from_numpy(random.permutation(count)),
    )


def plain_graph(data: GraphData, library: str) -> Any:
    """The whole graph in float64."""
    if library == "pyg":
        whole = data.to_pyg()
        for name, value in list(whole):
            if isinstance(value, torch.Tensor) and value.is_floating_point():
                whole[name] = value.double()
        return whole
    whole = data.to_dgl()
    for frame in (whole.ndata, whole.edata):
        for name, value in list(frame.items()):
            if value.is_floating_point():
                frame[name] = value.double()
    return whole


def write_parts(folder: Path, ranks: int) -> None:
    """A partition folder of each graph: cut at random on several ranks; one rank gets its order of the vertices."""
    from distgnn.partition import partition_graph

    for name, make in WORLDS.items():
        out = folder / f"{name}-{ranks}"
        if not out.exists():
            partition_graph(make(), ranks, out, method="random" if ranks > 1 else "cmr")
