"""Seconds and peak memory of an epoch on a typed graph, beside PyG and DGL: one process each, in turn.

    python tests/bench/typed/epochs.py                              # sage, hgt and rgcn; 500,000 vertices, 5 M arcs
    python tests/bench/typed/epochs.py --models sage --spec typed:nodes=20000,avg_degree=5 --epochs 3
    python tests/bench/typed/epochs.py --ranks 4 --who distgnn      # and what an epoch sends, without sums of gradients

HeteroConv or HeteroGraphConv over SAGEConv, HGTConv, and RGCNConv or RelGraphConv with 4 bases on one vertex set: two
layers 64 wide, a linear one, Adam. The first epoch does not count. A process that runs out of memory has its row, too.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

SPEC = "typed:nodes=500000,avg_degree=5,feats=64,others=64"
HIDDEN, BASES, HEADS = 64, 4, 4


def main() -> None:
    """Run what is asked for, a process each, and print a row of JSON for each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--spec", default=SPEC)
    parser.add_argument("--models", nargs="*", default=["sage", "hgt", "rgcn"])
    parser.add_argument("--who", nargs="*", default=["distgnn", "pyg", "dgl"])
    parser.add_argument("--memory", type=float, default=0, help="GiB of addresses that a process may have; 0: any")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--ranks", type=int, default=1, help="of distgnn; one thread each")
    parser.add_argument(
        "--no-cache-first", action="store_true", help="of distgnn: sums of features are made every epoch"
    )
    parser.add_argument("--data", help="a folder in which the graph and its parts are kept, or are already")
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        if options.memory:
            resource.setrlimit(resource.RLIMIT_AS, (int(options.memory * 2**30),) * 2)
        found = measure(options)
        if found:
            print(json.dumps(found))
        return
    from distgnn.datasets import load_graph
    from distgnn.partition import partition_graph

    with tempfile.TemporaryDirectory() as made:
        folder = Path(options.data or made)
        if not (folder / "whole.pt").exists():
            graph = load_graph(options.spec)
            partition_graph(graph, options.ranks, folder / "parts")
            torch.save((graph.type_counts, graph.to_pyg()), folder / "whole.pt")
            del graph
        launcher = ["mpiexec", "-n", str(options.ranks)] if options.ranks > 1 else []
        for model in options.models:
            for who in options.who:
                again = ["--inside", str(folder), "--who", who, "--models", model, "--epochs", str(options.epochs)]
                again += ["--memory", str(options.memory), *["--no-cache-first"] * options.no_cache_first]
                command = [*(launcher if who == "distgnn" else ()), sys.executable, __file__, *again]
                found = subprocess.run(command, capture_output=True, text=True, check=False)
                row = found.stdout.splitlines()[-1:] or [json.dumps({"failed": found.stderr[-300:]})]
                print(model, who, row[0], flush=True)


def measure(options: argparse.Namespace) -> dict[str, float]:
    """Median seconds of an epoch, MiB that ranks send in one, and of the largest process GiB: peak of all epochs, and
    how far that is above what was there before the first. On rank 0; nothing on others."""
    from distgnn.system.sizes import peak_resident_bytes, resident

    torch.manual_seed(0)
    folder, who, model, comm = options.inside, options.who[0], options.models[0], None
    if who == "distgnn":
        import distgnn as dg

        data = dg.load(Path(folder) / "parts", say=None, cache_first=not options.no_cache_first)
        counts, comm = data.num_nodes_dict, data.comm
    else:
        counts, data = torch.load(f"{folder}/whole.pt", weights_only=False)
        counts = counts if isinstance(counts, dict) else dict(zip(data.node_types, counts, strict=True))
    for kind in data.node_types:
        if "x" not in data[kind]:
            data[kind].x = torch.randn(int(counts[kind]), HIDDEN)
    run = (_dgl if who == "dgl" else _pyg)(data, model)
    optimizer, seconds, sent = torch.optim.Adam(run.model.parameters(), lr=0.01), [], 0
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins here
    before = resident().total
    for _ in range(options.epochs + 1):
        start, sent = time.perf_counter(), data.transport.counters.sent_bytes if comm else 0
        optimizer.zero_grad()
        loss = run()
        loss.backward()
        optimizer.step()
        seconds.append(time.perf_counter() - start)
    peak = peak_resident_bytes()
    found = {"seconds": float(np.median(seconds[1:])), "loss": float(loss)}
    found |= {"peak_gib": peak / 2**30, "above_gib": (peak - before) / 2**30}
    if comm and comm.size > 1:
        found |= {name: comm.allreduce(found[name], max) for name in ("peak_gib", "above_gib")}
        found["sent_mib"] = comm.allreduce(data.transport.counters.sent_bytes - sent) / 2**20
        found = found if comm.rank == 0 else {}
    return {name: round(number, 3) for name, number in found.items()}


class Run:
    """A model and its forward pass, with the loss of the labelled papers."""

    def __init__(self, model, forward, labels, mask):
        self.model, self.forward, self.labels, self.mask = model, forward, labels, mask

    def __call__(self) -> torch.Tensor:
        return F.cross_entropy(self.forward(self.model)[self.mask], self.labels[self.mask])


def _pyg(data, name: str) -> Run:
    """Also of distgnn, whose graph has the manners of HeteroData."""
    from torch_geometric.nn import HeteroConv, HGTConv, RGCNConv, SAGEConv

    paper, meta = data["paper"], data.metadata()
    classes = int(paper.y.max()) + 1
    if name == "rgcn":
        whole = data.to_homogeneous()
        layers = [RGCNConv(HIDDEN, HIDDEN, len(meta[1]), num_bases=BASES) for _ in range(2)]
        x, ends, kinds = whole.x, whole.edge_index, whole.edge_type
        rows = whole.node_type == meta[0].index("paper")
        forward = lambda model: model[2](model[1](model[0](x, ends, kinds).relu(), ends, kinds)[rows])  # noqa: E731
        return Run(nn.ModuleList([*layers, nn.Linear(HIDDEN, classes)]), forward, paper.y, paper.train_mask)
    if name == "hgt":
        layers = [HGTConv(HIDDEN, HIDDEN, meta, heads=HEADS) for _ in range(2)]
    else:
        layers = [HeteroConv({key: SAGEConv(HIDDEN, HIDDEN) for key in meta[1]}) for _ in range(2)]
    layers.append(nn.Linear(HIDDEN, classes))

    def forward(model):
        x = {kind: rows.relu() for kind, rows in model[0](data.x_dict, data.edge_index_dict).items()}
        return model[2](model[1](x, data.edge_index_dict)["paper"])

    return Run(nn.ModuleList(layers), forward, paper.y, paper.train_mask)


def _dgl(data, name: str) -> Run:
    from distgnn.system.other_libraries import import_dgl

    dgl = import_dgl()
    from dgl.nn.pytorch import HeteroGraphConv, HGTConv, RelGraphConv, SAGEConv

    sizes = {kind: data[kind].x.shape[0] for kind in data.node_types}
    graph = dgl.heterograph({key: tuple(data[key].edge_index) for key in data.edge_types}, sizes)
    paper, classes = data["paper"], int(data["paper"].y.max()) + 1
    if name == "sage":
        make = lambda: HeteroGraphConv({key[1]: SAGEConv(HIDDEN, HIDDEN, "mean") for key in data.edge_types})  # noqa: E731
        model = nn.ModuleList([make(), make(), nn.Linear(HIDDEN, classes)])

        def forward(model):
            x = {kind: rows.relu() for kind, rows in model[0](graph, data.x_dict).items()}
            return model[2](model[1](graph, x)["paper"])

        return Run(model, forward, paper.y, paper.train_mask)
    graph.ndata["x"] = data.x_dict
    whole = dgl.to_homogeneous(graph, ndata=["x"])
    x, kinds, types = whole.ndata["x"], whole.edata[dgl.ETYPE], whole.ndata[dgl.NTYPE]
    rows = types == graph.get_ntype_id("paper")
    if name == "rgcn":
        layers = [RelGraphConv(HIDDEN, HIDDEN, len(graph.etypes), "basis", BASES) for _ in range(2)]
        model = nn.ModuleList([*layers, nn.Linear(HIDDEN, classes)])
        forward = lambda model: model[2](model[1](whole, model[0](whole, x, kinds).relu(), kinds)[rows])  # noqa: E731
    else:
        sizes = (len(graph.ntypes), len(graph.etypes))
        layers = [HGTConv(HIDDEN, HIDDEN // HEADS, HEADS, *sizes) for _ in range(2)]
        model = nn.ModuleList([*layers, nn.Linear(HIDDEN, classes)])

        def forward(model):
            hidden = model[0](whole, x, types, kinds).relu()
            return model[2](model[1](whole, hidden, types, kinds)[rows])

    return Run(model, forward, paper.y, paper.train_mask)


if __name__ == "__main__":
    main()
