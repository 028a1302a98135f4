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


def linked_graph():
    """With a split of its edges, negatives of both kinds, values of vertices and graph ids."""
    graph = small_graph(node_values=np.ones((24, 2), np.float32), graph_ids=np.arange(24) // 8).split_links(0.2, 0.2)
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
    small_graph().save(places["graph"])
    sparse = scipy.sparse.random(24, 9, 0.3, "csr", np.float32, 0)
    multilabel = np.random.default_rng(1).integers(0, 2, (24, 3)).astype(np.int8)
    small_graph(feats=sparse, labels=multilabel).save(places["sparse"])
    small_graph(edge_weight=None).save(places["table"])
    edges = np.load(places["table"] / "edges.npy")
    (places["table"] / "edges.npy").unlink()
    (places["table"] / "edges.csv.gz").write_bytes(gzip.compress(_csv(edges)))
    return places | {
        "ogb": _ogb(root / "ogbn_arxiv"),
        "mag": _mag(root / "ogbn_mag"),
        "ogb links": _ogb_links(root / "ogbl_ddi"),
        "typed": typed_graph().save(root / "typed"),
        "links": linked_graph().save(root / "links"),
        "papers": _papers(root / "ogbn_papers100M"),
        "reddit": _reddit(root),
    }


def _csv(rows) -> bytes:
    return (
        "\n".join(",".join(map(str, row)) for row in np.asarray(rows).reshape(len(rows), -1).tolist()).encode() + b"\n"
    )


def _ogb(folder: Path) -> Path:
    rng = np.random.default_rng(2)
    tables = {
        "raw/edge": rng.integers(0, 20, (50, 2)),
        "raw/num-node-list": [20],
        "raw/num-edge-list": [50],
        "raw/node-label": rng.integers(0, 40, 20),
        "raw/node-feat": rng.standard_normal((20, 3)).round(3),
        **_splits(20),
    }
    return _write_tables(folder, tables)


def _ogb_links(folder: Path) -> Path:
    import torch

    edges = np.stack([np.arange(30), np.arange(1, 31)], axis=1)
    _write_tables(folder, {"raw/edge": edges, "raw/num-node-list": [31], "raw/num-edge-list": [30]})
    pairs = {"edge": np.array([[0, 5], [7, 2]]), "edge_neg": np.array([[1, 5], [7, 3], [2, 2]])}
    (folder / "split" / "target").mkdir(parents=True)
    for name, content in {"train": {"edge": edges}, "valid": pairs, "test": pairs}.items():
        torch.save(content, folder / "split" / "target" / f"{name}.pt", pickle_protocol=4)
    return folder


def _splits(count: int) -> dict:
    thirds = np.array_split(np.arange(count), 3)
    return {f"split/time/{name}": ids for name, ids in zip(("train", "valid", "test"), thirds, strict=True)}


def _write_tables(folder: Path, tables: dict) -> Path:
    for name, rows in tables.items():
        path = folder / f"{name}.csv.gz"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(_csv(rows)))
    return folder


def _mag(folder: Path) -> Path:
    rng = np.random.default_rng(6)
    sizes = {"author": 8, "paper": 12}
    edges = {"author___writes___paper": (8, 12), "paper___cites___paper": (12, 12)}
    words = {
        "raw/num-node-dict": [sizes, sizes.values()],
        "raw/nodetype-has-label": [sizes, (False, True)],
        "raw/triplet-type-list": [name.split("___") for name in edges],
        "split/time/nodetype-has-split": [sizes, (False, True)],
    }
    tables = {
        "raw/node-feat/paper/node-feat": rng.standard_normal((12, 3)).round(3),
        "raw/node-label/paper/node-label": rng.integers(0, 349, 12),
    }
    for name, (sources, targets) in edges.items():
        ends = [rng.integers(0, sources, 20), rng.integers(0, targets, 20)]
        tables |= {f"raw/relations/{name}/edge": np.stack(ends, 1), f"raw/relations/{name}/num-edge-list": [20]}
    tables |= {name.replace("time/", "time/paper/"): ids for name, ids in _splits(12).items()}
    _write_tables(folder, tables)
    for name, rows in words.items():
        text = "".join(",".join(map(str, row)) + "\n" for row in rows)
        (folder / f"{name}.csv.gz").write_bytes(gzip.compress(text.encode()))
    return folder


def _papers(folder: Path) -> Path:
    rng = np.random.default_rng(3)
    _write_tables(folder, _splits(20))
    (folder / "raw").mkdir()
    feats = rng.standard_normal((20, 4)).astype(np.float32)
    edges = rng.integers(0, 20, (2, 50))
    np.savez(folder / "raw" / "data.npz", edge_index=edges, num_nodes_list=np.array([20]), node_feat=feats)
    np.savez(folder / "raw" / "node-label.npz", node_label=rng.integers(0, 172, (20, 1)).astype(np.float32))
    return folder


def _reddit(root: Path) -> Path:
    import scipy.sparse

    folder, rng = root / "reddit", np.random.default_rng(4)
    folder.mkdir()
    half = scipy.sparse.triu(scipy.sparse.random(20, 20, 0.2, "coo", np.float32, 5), 1)
    scipy.sparse.save_npz(folder / "reddit_graph.npz", (half + half.T).tocoo())
    columns = {"feature": rng.standard_normal((20, 4)), "label": rng.integers(0, 41, 20)}
    np.savez(folder / "reddit_data.npz", **columns, node_types=rng.integers(1, 4, 20))
    return folder
