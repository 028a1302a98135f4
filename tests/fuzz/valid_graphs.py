"""A small valid graph in every format that is read: folders for the readers to start from."""

import gzip
from pathlib import Path

import numpy as np


def small_graph(**extra):
    from distgnn.datasets import GraphData

    rng = np.random.default_rng(0)
    feats = rng.standard_normal((24, 3)).astype(np.float32)
    fields = {"feats": feats, "labels": rng.integers(0, 3, 24), "edge_weight": rng.random(60).astype(np.float32)}
    splits = {"train": np.arange(12), "valid": np.arange(12, 18), "test": np.arange(18, 24)}
    return GraphData.from_arrays(rng.integers(0, 24, (60, 2)), 24, directed=False, name="g", **fields | splits | extra)


def full_graph():
    """With types, a split of its edges, negatives of both kinds, values of vertices and graph ids."""
    rng = np.random.default_rng(7)
    types = {"edge_types": rng.integers(0, 2, 60), "node_types": rng.integers(0, 3, 24)}
    values = {"node_values": np.ones((24, 2), np.float32), "graph_ids": np.arange(24) // 8}
    graph = small_graph(**types, **values).split_links(0.2, 0.2)
    graph.valid_negative_targets = np.ones((len(graph.valid_edges), 2), dtype=np.int64)
    return graph


def typed_graph():
    from distgnn.datasets import GraphData

    rng = np.random.default_rng(0)
    papers = {"feats": rng.random((14, 3)), "labels": rng.integers(0, 3, 14), "train": np.arange(7), "valid": [8, 9]}
    words = {"num_nodes": 5, "node_names": np.array(["a", "b", "ü", "d", "e"]), "node_values": rng.random(5)}
    tables = {"paper": papers, "word": words, ("word", "in", "paper"): {"edges": rng.integers(0, 5, (30, 2))}}
    cites = {"edges": rng.integers(0, 14, (30, 2)), "edge_weight": rng.random(30), "edge_feats": rng.random((30, 2))}
    return GraphData.from_types(tables | {("paper", "cites", "paper"): cites}, name="g")


def graph_folders(root: Path) -> dict[str, Path]:
    import scipy.sparse

    places = {name: root / name for name in ("graph", "sparse", "table")}
    full_graph().save(places["graph"])
    sparse = scipy.sparse.random(24, 9, 0.3, "csr", np.float32, 0)
    multilabel = np.random.default_rng(1).integers(0, 2, (24, 3)).astype(np.int8)
    small_graph(feats=sparse, labels=multilabel).save(places["sparse"])
    small_graph(edge_weight=None).save(places["table"])
    write_tables(places["table"], {"edges": np.load(places["table"] / "edges.npy")})
    (places["table"] / "edges.npy").unlink()
    return places | {
        "ogb": _ogb(root / "ogbn_arxiv"),
        "mag": _mag(root / "ogbn_mag"),
        "ogb links": _ogb_links(root / "ogbl_ddi"),
        "typed": typed_graph().save(root / "typed"),
        "papers": _papers(root / "ogbn_papers100M"),
        "reddit": _reddit(root),
    }


def write_tables(folder: Path, tables: dict) -> Path:
    """Rows of numbers or words as .csv.gz, as pandas writes them; by the path below `folder`."""
    for name, rows in tables.items():
        path = folder / f"{name}.csv.gz"
        path.parent.mkdir(parents=True, exist_ok=True)
        text = "".join(",".join(map(str, np.atleast_1d(row))) + "\n" for row in rows)
        path.write_bytes(gzip.compress(text.encode()))
    return folder


def write_ogb(folder: Path, split: str, edges, num_nodes: int, labels=None, splits=None, **tables) -> Path:
    """OGB's folder of text files: tables and ids of its splits."""
    found = {"edge": edges, "num_node_list": [num_nodes], "num_edge_list": [len(edges)], **tables}
    found |= {} if labels is None else {"node_label": labels}
    splits = {"train": [0, 1], "valid": [2], "test": [3]} if splits is None else splits
    write_tables(folder / "raw", {name.replace("_", "-"): rows for name, rows in found.items()})
    write_tables(folder / "split" / split, splits)
    return folder


def write_mag(folder: Path, sizes: dict, edges: dict, feats, labels, splits: dict) -> Path:
    """ogbn-mag's layout; papers have features, labels and splits."""
    only_papers = [name == "paper" for name in sizes]
    tables = {
        "raw/num-node-dict": [list(sizes), list(sizes.values())],
        "raw/nodetype-has-label": [list(sizes), only_papers],
        "raw/triplet-type-list": list(edges)[::-1],
        "raw/node-feat/paper/node-feat": feats,
        "raw/node-label/paper/node-label": labels,
        "split/time/nodetype-has-split": [list(sizes), only_papers],
        **{f"split/time/paper/{name}": ids for name, ids in splits.items()},
    }
    for relation, pairs in edges.items():
        place = f"raw/relations/{'___'.join(relation)}"
        tables |= {f"{place}/edge": pairs, f"{place}/num-edge-list": [len(pairs)]}
    return write_tables(folder, tables)


def write_papers(folder: Path, labels, splits: dict, save=np.savez, **arrays) -> Path:
    """The binary layout of ogbn-papers100M; an array that is None is left out."""
    write_tables(folder / "split" / "time", splits)
    (folder / "raw").mkdir()
    save(folder / "raw" / "data.npz", **{name: array for name, array in arrays.items() if array is not None})
    save(folder / "raw" / "node-label.npz", node_label=labels)
    return folder


def write_reddit(folder: Path, adjacency, **columns) -> Path:
    """DGL's two files."""
    import scipy.sparse

    folder.mkdir(exist_ok=True)
    scipy.sparse.save_npz(folder / "reddit_graph.npz", scipy.sparse.coo_matrix(adjacency))
    np.savez(folder / "reddit_data.npz", **columns)
    return folder


def _splits(count: int) -> dict:
    return dict(zip(("train", "valid", "test"), np.array_split(np.arange(count), 3), strict=True))


def _ogb(folder: Path) -> Path:
    rng = np.random.default_rng(2)
    edges, labels, feats = rng.integers(0, 20, (50, 2)), rng.integers(0, 40, 20), rng.standard_normal((20, 3)).round(3)
    return write_ogb(folder, "time", edges, 20, labels, _splits(20), node_feat=feats)


def _ogb_links(folder: Path) -> Path:
    import torch

    edges = np.stack([np.arange(30), np.arange(1, 31)], axis=1)
    write_ogb(folder, "target", edges, 31, splits={})
    pairs = {"edge": np.array([[0, 5], [7, 2]]), "edge_neg": np.array([[1, 5], [7, 3], [2, 2]])}
    (folder / "split" / "target").mkdir(parents=True)
    for name, content in {"train": {"edge": edges}, "valid": pairs, "test": pairs}.items():
        torch.save(content, folder / "split" / "target" / f"{name}.pt", pickle_protocol=4)
    return folder


def _mag(folder: Path) -> Path:
    rng = np.random.default_rng(6)
    edges = {("author", "writes", "paper"): (8, 12), ("paper", "cites", "paper"): (12, 12)}
    edges = {name: np.stack([rng.integers(0, size, 20) for size in sizes], 1) for name, sizes in edges.items()}
    feats, labels = rng.standard_normal((12, 3)).round(3), rng.integers(0, 349, 12)
    return write_mag(folder, {"author": 8, "paper": 12}, edges, feats, labels, _splits(12))


def _papers(folder: Path) -> Path:
    rng = np.random.default_rng(3)
    arrays = {"node_feat": rng.standard_normal((20, 4)).astype(np.float32), "edge_index": rng.integers(0, 20, (2, 50))}
    labels = rng.integers(0, 172, (20, 1)).astype(np.float32)
    return write_papers(folder, labels, _splits(20), num_nodes_list=np.array([20]), **arrays)


def _reddit(root: Path) -> Path:
    import scipy.sparse

    rng = np.random.default_rng(4)
    half = scipy.sparse.triu(scipy.sparse.random(20, 20, 0.2, "coo", np.float32, 5), 1)
    columns = {"feature": rng.standard_normal((20, 4)), "label": rng.integers(0, 41, 20)}
    return write_reddit(root / "reddit", half + half.T, **columns, node_types=rng.integers(1, 4, 20))
