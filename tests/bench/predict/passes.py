"""One pass over every vertex: seconds and peaks of `dg.predict` beside PyG's and DGL's ways, one process after another.

    python tests/bench/predict/passes.py WORK                                    # 300,000 vertices, 12 M arcs
    python tests/bench/predict/passes.py WORK --only ours offload                # some ways
    python tests/bench/predict/passes.py WORK --nodes 2449029 --communities 2400 --mixing 0.06 --degree 65 \\
        --only ours offload                                                      # products' size
    python tests/bench/predict/passes.py WORK --only changed --degree 3          # 1, 100, 10,000 vertices changed

| way | is |
|---|---|
| plain | PyG's GraphSAGE, whole graph: its rows of arcs take 12 GB at the default size |
| inference | PyG's `model.inference(NeighborLoader)`; needs pyg-lib or torch-sparse |
| loader | PyG, layer by layer over blocks of arcs sorted by target, as users without these write it |
| dgl | DGL's layer loop over blocks of a full neighbour sampler, as its examples write it |
| ours, offload | `dg.predict` on partition folders, without and with `--offload` |
| changed | `dg.predict(changed=)` on one rank, beside a pass over parts that are there, and one that cuts the graph |

Seconds are of the whole process, with start, reading and writing. Peaks are sums over ranks, MB: all resident
pages, and those of no file. `off` is the largest difference from the first way's rows over the largest number.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import torch

sys.path.append(str(Path(__file__).parents[1] / "memory"))
from peaks import Watch

WAYS = ("ours", "offload", "dgl", "loader", "inference", "plain")
BLOCK = 10_000  # targets of a step of the loops
CHANGED = (1, 100, 10_000)


def source(args):
    return (
        f"communities:nodes={args.nodes},avg_degree={args.degree},communities={args.communities},"
        f"mixing={args.mixing},feats={args.feats},classes={args.classes}"
    )


def model(args):
    from torch_geometric.nn.models import GraphSAGE

    torch.manual_seed(0)
    return GraphSAGE(args.feats, args.hidden, args.layers, args.classes, dropout=0.5).eval()


def arcs(graph):
    edges = torch.from_numpy(np.array(graph.edges, np.int64)).t()
    return torch.cat([edges, edges.flip(0)], 1)


def plain(net, graph, args):
    return net(torch.from_numpy(np.asarray(graph.feats)), arcs(graph))


def inference(net, graph, args):
    from torch_geometric.data import Data
    from torch_geometric.loader import NeighborLoader

    data = Data(x=torch.from_numpy(np.asarray(graph.feats)), edge_index=arcs(graph))
    return net.inference(NeighborLoader(data, num_neighbors=[-1], batch_size=BLOCK))


def loader(net, graph, args):
    ends, rows = arcs(graph), torch.from_numpy(np.asarray(graph.feats))
    ends = ends[:, ends[1].argsort(stable=True)]
    starts = torch.searchsorted(ends[1].contiguous(), torch.arange(0, graph.num_nodes + BLOCK, BLOCK))
    for place, conv in enumerate(net.convs):
        made = []
        for block, (first, last) in enumerate(zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True)):
            some = slice(block * BLOCK, min((block + 1) * BLOCK, graph.num_nodes))
            near = ends[:, first:last] - torch.tensor([[0], [block * BLOCK]])
            one = conv((rows, rows[some]), near)
            made.append(one.relu() if place + 1 < len(net.convs) else one)
        rows = torch.cat(made)
    return rows


def dgl(net, graph, args):
    from distgnn.system.other_libraries import import_dgl

    library = import_dgl()
    ends, rows = arcs(graph), torch.from_numpy(np.asarray(graph.feats))
    whole = library.graph((ends[0], ends[1]), num_nodes=graph.num_nodes)
    del ends
    sampler = library.dataloading.MultiLayerFullNeighborSampler(1)
    for place, conv in enumerate(net.convs):
        wide, narrow = conv.lin_l.weight.shape
        layer = library.nn.SAGEConv(narrow, wide, "mean")
        layer.fc_neigh.weight.data, layer.fc_self.weight.data = conv.lin_l.weight, conv.lin_r.weight
        layer.fc_self.bias.data = conv.lin_l.bias
        made = torch.empty(graph.num_nodes, wide)
        steps = library.dataloading.DataLoader(whole, torch.arange(graph.num_nodes), sampler, batch_size=BLOCK)
        for given, wanted, blocks in steps:
            one = layer(blocks[0], rows[given])
            made[wanted] = one.relu() if place + 1 < len(net.convs) else one
        rows = made
    return rows


def run_way(way, work, args):
    """One way in this process: rows go to WORK/way.npy."""
    net, out = model(args), work / f"{way}.npy"
    if way in ("ours", "offload"):
        import distgnn as dg

        folder = work / "rows" if way == "offload" else None
        parts = work / f"parts-{args.ranks}"
        dg.predict(net, parts, out=out, overwrite=True, quiet=True, offload=folder, memory=args.memory)
        return
    from distgnn.datasets import load_graph

    with torch.no_grad():
        np.save(out, globals()[way](net, load_graph(work / "graph"), args).numpy())


def changed(work, args):
    """Seconds of whole passes, and of what a change reaches, in one process whose kernels are compiled."""
    import distgnn as dg
    from distgnn.datasets import load_graph

    net, graph = model(args), load_graph(work / "graph")
    before, how = dg.predict(net, work / "parts-1", ranks=1, quiet=True), {"ranks": 1, "quiet": True}
    graph.feats, random = np.array(graph.feats), np.random.default_rng(0)
    os.environ["DISTGNN_CACHE"] = str(work / "cache")
    for name, count in (("parts", 0), ("graph", 1), *(("changed", count) for count in CHANGED)):
        ids = random.choice(args.nodes, count, replace=False)
        graph.feats[ids] += 1
        again = {"changed": ids, "before": before, "hops": args.layers} if name == "changed" else {}
        began = time.perf_counter()
        before = dg.predict(net, work / "parts-1" if name == "parts" else graph, **how, **again)
        print(f"| {count if again else name} | {time.perf_counter() - began:.2f} |", flush=True)


def prepare(work, args):
    """The graph and its parts, once."""
    from distgnn.datasets import load_graph
    from distgnn.partition import partition_graph

    work.mkdir(parents=True, exist_ok=True)
    (work / "rows").mkdir(exist_ok=True)
    if not (work / "graph").exists():
        load_graph(source(args)).save(work / "graph")
    wanted = {1, args.ranks} if "changed" in args.only else {args.ranks}
    for ranks in wanted:
        if not (work / f"parts-{ranks}").exists():
            partition_graph(load_graph(work / "graph"), ranks, work / f"parts-{ranks}", memory="8GB")


def main():
    """Prepare, run each way in a process of its own, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("work", type=Path)
    for name, value in (("nodes", 300_000), ("communities", 300), ("feats", 100), ("hidden", 256), ("layers", 3)):
        parser.add_argument(f"--{name}", type=int, default=value)
    for name, value in (("classes", 47), ("degree", 40.0), ("mixing", 0.3)):
        parser.add_argument(f"--{name}", type=type(value), default=value)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--memory", help="limit of a rank of ours")
    parser.add_argument("--only", nargs="+", default=[*WAYS, "changed"])
    parser.add_argument("--way", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.way == "prepare":
        return prepare(args.work, args)
    if args.way:
        return run_way(args.way, args.work, args)
    subprocess.run([sys.executable, __file__, *sys.argv[1:], "--way", "prepare"], check=True)
    first = None
    print(f"{source(args)}, {args.layers} x {args.hidden}, ours on {args.ranks}\n| way | seconds | peak | anon | off |")
    for way in (one for one in args.only if one != "changed"):
        watch, began = Watch(), time.perf_counter()
        watch.start()
        done = subprocess.run(
            [sys.executable, __file__, *sys.argv[1:], "--way", way], capture_output=True, text=True, check=False
        )
        seconds = time.perf_counter() - began
        watch.stop.set()
        watch.join()
        if done.returncode:
            print(f"| {way} | does not run: {done.stderr.strip().splitlines()[-1][:200]} |", flush=True)
            continue
        rows = np.load(args.work / f"{way}.npy", mmap_mode="r")
        first = rows if first is None else first
        off = float(np.abs(rows - first).max() / np.abs(first).max())
        peaks = sorted(watch.peaks.values(), reverse=True)[: args.ranks if way in ("ours", "offload") else 1]
        row = {"way": way, "seconds": seconds, "peaks": peaks, "off": off}
        with open(args.work / "passes.jsonl", "a", encoding="utf-8") as stream:
            stream.write(json.dumps(row) + "\n")
        peak, anon = (sum(one[place] for one in peaks) / 1e6 for place in (0, 1))
        print(f"| {way} | {seconds:.1f} | {peak:.0f} | {anon:.0f} | {off:.1e} |", flush=True)
    if "changed" in args.only:
        print("| vertices changed | seconds |")
        changed(args.work, args)
    return None


if __name__ == "__main__":
    main()
