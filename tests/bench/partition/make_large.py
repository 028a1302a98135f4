"""Write a large planted-community graph to disk in chunks: as a plain graph folder, or in ogbn-papers100M's own layout.

    python tests/bench/partition/make_large.py OUT --vertices 32e6 --edges 410e6 --feats 8
    python tests/bench/partition/make_large.py OUT/ogbn_papers100M --vertices 4e6 --edges 52e6 --feats 128 --layout ogb

Rows are drawn as `communities:` draws them (degrees follow a power law with exponent 2.5, targets in proportion to
degree, from the source's community or, with probability `mixing`, from anywhere); vertex ids and rows are in random
order. Duplicates stay. Memory: 4 bytes for each row, 24 for each vertex; disk: 8 for each row (OGB: 16) and the
features.
"""

import argparse
import gzip
import json
import zipfile
from pathlib import Path

import numpy as np

CHUNK = 1 << 22


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--vertices", type=float, default=1e6)
    parser.add_argument("--edges", type=float, default=13e6)
    parser.add_argument("--communities", type=float, default=0, help="default: one for 100 vertices")
    parser.add_argument("--mixing", type=float, default=0.3)
    parser.add_argument("--feats", type=int, default=8)
    parser.add_argument("--layout", choices=("folder", "ogb"), default="folder")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    args.vertices, args.edges = int(args.vertices), int(args.edges)
    communities = int(args.communities) or max(1, args.vertices // 100)
    graph = Planted(args.vertices, args.edges, communities, args.mixing, args.seed)
    (write_ogb if args.layout == "ogb" else write_folder)(args, graph)


class Planted:
    """Vertices by community, each as often in `stubs` as it has rows: a uniform draw is a draw by degree."""

    def __init__(self, vertices, edges, communities, mixing, seed):
        self.rng, self.mixing = np.random.default_rng(seed), mixing
        pull = np.minimum((1 - self.rng.random(vertices)) ** (-1 / 1.5), np.sqrt(vertices))
        pull *= edges / pull.sum()
        rows = np.maximum(np.floor(pull + self.rng.random(vertices)), 1).astype(np.int64)
        del pull
        places = np.concatenate([[0], np.cumsum(rows)])
        begins = np.concatenate([[0], np.sort(self.rng.integers(0, vertices, communities - 1)), [vertices]])
        self.community = np.repeat(np.arange(communities, dtype=np.int32), np.diff(begins))
        self.begins = places[begins]
        del places
        self.stubs = np.repeat(np.arange(vertices, dtype=np.int32), rows)
        self.ids = self.rng.permutation(vertices).astype(np.int32)

    def draw(self, count):
        """[2, count] int32: ends of so many rows."""
        source = self.stubs[self.rng.integers(0, len(self.stubs), count)]
        home = self.community[source]
        low, high = self.begins[home], self.begins[home + 1]
        far = self.rng.random(count, dtype=np.float32) < self.mixing
        low[far], high[far] = 0, len(self.stubs)
        target = self.stubs[low + (self.rng.random(count) * (high - low)).astype(np.int64)]
        return self.ids[np.stack([source, target])]


def chunks(total):
    return [(begin, min(begin + CHUNK, total)) for begin in range(0, total, CHUNK)]


def create(path, shape, dtype):
    path.parent.mkdir(parents=True, exist_ok=True)
    file = open(path, "wb")
    header = {"descr": np.lib.format.dtype_to_descr(np.dtype(dtype)), "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, header)
    return file


def write_folder(args, graph):
    header = {"name": args.out.name, "num_nodes": args.vertices, "directed": False, "num_classes": 16}
    with create(args.out / "edges.npy", (args.edges, 2), np.int32) as file:
        for begin, end in chunks(args.edges):
            file.write(np.ascontiguousarray(graph.draw(end - begin).T).tobytes())
    write_vertices(args, graph, create(args.out / "feats.npy", (args.vertices, args.feats), np.float32))
    np.save(args.out / "labels.npy", graph.rng.integers(0, 16, args.vertices).astype(np.int8))
    for name, ids in splits(args, graph):
        np.save(args.out / f"{name}.npy", ids)
    (args.out / "graph.json").write_text(json.dumps(header))


def write_vertices(args, graph, file):
    with file:
        for begin in range(0, args.vertices, 1 << 18):
            rows = min(1 << 18, args.vertices - begin)
            file.write(graph.rng.standard_normal((rows, args.feats), dtype=np.float32).tobytes())


def splits(args, graph):
    order = graph.rng.permutation(args.vertices)[: args.vertices // 50]
    return zip(
        ("train", "valid", "test"), np.array_split(order, [len(order) * 8 // 10, len(order) * 9 // 10]), strict=True
    )


def write_ogb(args, graph):
    """data.npz as np.savez writes it: members stored as they are, edge_index int64 [2, E]."""
    raw, split = args.out / "raw", args.out / "split" / "time"
    split.mkdir(parents=True)
    ends = [create(raw / f"{name}.tmp", (args.edges,), np.int64) for name in ("src", "dst")]
    for begin, end in chunks(args.edges):
        for file, column in zip(ends, graph.draw(end - begin), strict=True):
            file.write(column.astype(np.int64).tobytes())
    for file in ends:
        file.close()
    with create(raw / "edge_index.npy", (2, args.edges), np.int64) as file:
        for name in ("src", "dst"):
            column = np.load(raw / f"{name}.tmp", mmap_mode="r")
            for begin, end in chunks(args.edges):
                file.write(column[begin:end].tobytes())
            (raw / f"{name}.tmp").unlink()
    write_vertices(args, graph, create(raw / "node_feat.npy", (args.vertices, args.feats), np.float32))
    np.save(raw / "node_year.npy", np.full((args.vertices, 1), 2015, dtype=np.int64))
    np.save(raw / "num_nodes_list.npy", np.array([args.vertices]))
    np.save(raw / "num_edges_list.npy", np.array([args.edges]))
    with zipfile.ZipFile(raw / "data.npz", "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        for name in ("edge_index", "num_edges_list", "num_nodes_list", "node_feat", "node_year"):
            archive.write(raw / f"{name}.npy", f"{name}.npy")
            (raw / f"{name}.npy").unlink()
    labels = graph.rng.integers(0, 172, (args.vertices, 1)).astype(np.float32)
    labels[graph.rng.random(args.vertices) < 0.98] = np.nan
    np.savez(raw / "node-label.npz", node_label=labels)
    for name, ids in splits(args, graph):
        with gzip.open(split / f"{name}.csv.gz", "wt", compresslevel=1) as file:
            file.write("\n".join(map(str, ids)) + "\n")


if __name__ == "__main__":
    main()
