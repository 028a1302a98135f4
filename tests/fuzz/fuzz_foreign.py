"""More readers that must survive hostile files: cuts and graphs of others, settings."""

import json
import pickle
from collections import defaultdict
from pathlib import Path

import numpy as np
import scipy.sparse
from fuzzing import Target
from valid_graphs import small_graph


def foreign_targets(root: Path) -> list[Target]:
    """All of this file."""
    return [_book(root), _planetoid(root), _config(root), _tables(root)]


def _book(root: Path) -> Target:
    from distgnn.partition.dgl_parts import read_dgl_cut

    edges = small_graph().edge_list()
    (root / "book").mkdir()
    half, size = edges.num_nodes // 2, edges.num_nodes
    book = {"num_parts": 2, "num_nodes": size, "node_map": {"_N": [[0, half], [half, size]]}}
    (root / "book" / "g.json").write_text(json.dumps(book))
    np.save(root / "book" / "node_orig_id.npy", np.arange(size)[::-1].copy())

    def read_book(folder: Path) -> None:
        read_dgl_cut(folder / "g.json", edges).check(edges)

    return Target("book", root / "book", read_book)


def _planetoid(root: Path) -> Target:
    from distgnn.datasets import load_graph

    folder, rng = root / "planetoid", np.random.default_rng(8)
    folder.mkdir()
    feats = scipy.sparse.random(20, 5, 0.4, "csr", np.float32, 0)
    labels = np.eye(3, dtype=np.int32)[rng.integers(0, 3, 20)]
    lists = defaultdict(list, {node: rng.integers(0, 20, 3).tolist() for node in range(20)})
    objects = {"allx": feats[:14], "x": feats[:6], "tx": feats[14:], "ally": labels[:14], "y": labels[:6]}
    objects |= {"ty": labels[14:], "graph": lists}
    for number, (kind, value) in enumerate(objects.items()):
        (folder / f"ind.cora.{kind}").write_bytes(pickle.dumps(value, number % 3))
    (folder / "ind.cora.test.index").write_text("".join(f"{node}\n" for node in range(14, 20)))
    return Target("planetoid", folder, load_graph)


def _config(root: Path) -> Target:
    from distgnn.cli.commands.train import _with_saved
    from distgnn.config import Settings
    from distgnn.partition import read_manifest

    manifest = read_manifest(root / "two-parts")
    folder = root / "settings"
    folder.mkdir()
    text = '[train]\nepochs = 5\nlr = 0.1\nmetric = "accuracy"\n[model]\nname = "gat"\nnum_heads = 2\n'
    text += (
        '[run]\nalgorithm = "cd-2"\nwire = "int8"\nlate_row_average = 0.5\n[data.graph]\nname = "g"\nnum_feats = 3\n'
    )
    (folder / "config.toml").write_text(text)

    def read(folder: Path) -> None:
        settings = _with_saved(Settings(), set(), str(folder / "config.toml"), manifest).checked()
        settings.check_graph(manifest["graph"])

    return Target("settings", folder, read)


def _tables(root: Path) -> Target:
    """Edges that name vertices, and vertices, as text and as Parquet."""
    import pyarrow
    import pyarrow.parquet

    from distgnn.datasets import load_graph
    from distgnn.datasets.findings.findings import Findings

    folder = root / "tables"
    folder.mkdir()
    (folder / "edges.csv").write_text('source,target,weight\nann,bob,1\nbob,"o, neil",2\n')
    (folder / "nodes.csv").write_text('name,age,city,kind,split\nann,1,Rome,x,train\nbob,2.5,,y,val\n"o, neil",3,a,,\n')
    columns = {"name": ["ann", "bob", "o, neil"], "age": [1.0, 2.0, 3.0], "kind": ["x", None, "y"]}
    pyarrow.parquet.write_table(pyarrow.table(columns), folder / "nodes.parquet")

    def read(folder: Path) -> None:
        for nodes in ("nodes.csv", "nodes.parquet"):
            tables = {"edges": folder / "edges.csv", "nodes": folder / nodes, "label": "kind"}
            load_graph(tables, findings=Findings())

    return Target("tables", folder, read)
