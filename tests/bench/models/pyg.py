"""Stacks of PyG's layers on our graph beside the same in plain PyG, and beside our own layers: time and peak memory.

    python tests/bench/models/pyg.py                 # GCN, SAGE and GAT on 2^16 vertices, 2 threads; some minutes
    python tests/bench/models/pyg.py --scale 10      # a tiny one

RMAT with 2^scale vertices, 16 edges per vertex, both directions; widths 100 -> 128 -> 128 -> 47 (GAT: 4 heads), three
convolutions with ReLU and dropout 0.5 in between, one training step (forward, cross-entropy, backward, Adam) per turn.

    pyg         plain PyG, with edge_index or a torch CSR matrix (no GAT there): the quicker of the two, measured first
    pyg on us   the same model, `dg.nn.distribute`d, on a DistGraph
    ours        the stack of `distgnn.nn`, norm "none", on a graph with self-loops where PyG adds them

Seconds: the median of 5 turns, all sides in turn, after one turn that does not count. Memory: peak resident bytes of 5
steps of one side in a process of its own, above those that were resident before the first one: graph, features and
model count for no side, nor do kernels and libraries, which a tiny graph has loaded. Memory that was freed before is
given back first, and the kernel's mark of the peak is set back.
"""

import argparse
import copy
import gc
import json
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import distgnn  # noqa: F401  # before torch, as `dg.load` asks for: it chooses how threads wait and memory is kept

# isort: split
import torch
import torch.nn.functional as F
import torch_geometric
from mpi4py import MPI
from torch_geometric import nn as gnn

from distgnn import nn as dnn
from distgnn.config import ModelConfig, num_threads
from distgnn.datasets import load_graph
from distgnn.graph.dist_graph import DistGraph
from distgnn.graph.loader import use_threads
from distgnn.kernels import give_back_freed_memory
from distgnn.partition import VertexCut, local_part

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "epoch"))
from contestant import peak_bytes

FEATS, HIDDEN, CLASSES, ROUNDS, TINY = 100, 128, 47, 5, 10
MODELS = ("gcn", "sage", "gat")
SIDES = ("edge_index", "csr", "pyg on us", "ours")


class Stack(torch.nn.Module):
    """Three convolutions of PyG, as its examples write them."""

    def __init__(self, name: str):
        super().__init__()
        widths = [(FEATS, HIDDEN), (HIDDEN, HIDDEN), (HIDDEN, CLASSES)]
        makers = {
            "gcn": lambda ins, outs: gnn.GCNConv(ins, outs, cached=True),
            "sage": gnn.SAGEConv,
            "gat": lambda ins, outs: gnn.GATConv(ins, outs // 4 if outs == HIDDEN else outs, 4, concat=outs == HIDDEN),
        }
        self.convs = torch.nn.ModuleList(makers[name](*pair) for pair in widths)
        self.drop = torch.nn.Dropout(0.5)

    def forward(self, x, edge_index):
        for conv in self.convs[:-1]:
            x = self.drop(conv(x, edge_index).relu())
        return self.convs[-1](x, edge_index)


def our_graph(data, self_loops: str) -> DistGraph:
    edges = data.edge_list("stored", self_loops)
    cut = VertexCut(1, torch.zeros(edges.num_edges).long().numpy(), torch.zeros(data.num_nodes).long().numpy())
    return DistGraph(local_part(data, edges, cut, 0), MPI.COMM_SELF)


def step_of(model: torch.nn.Module, x, graph, y, mask) -> Callable[[], float]:
    """One training step."""
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    arguments = (graph, x) if isinstance(graph, DistGraph) and not isinstance(model, Stack) else (x, graph)

    def step() -> float:
        model.train()
        optimizer.zero_grad()
        loss = F.cross_entropy(model(*arguments)[mask], y[mask])
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def side(name: str, kind: str, data) -> Callable[[], float]:
    """What runs one step of a side."""
    torch.manual_seed(0)
    model = Stack(name)
    if kind in ("edge_index", "csr"):
        theirs = data.to_pyg()
        index = theirs.edge_index
        if kind == "csr":  # transposed: rows are targets
            size = theirs.num_nodes, theirs.num_nodes
            index = torch_geometric.utils.to_torch_csr_tensor(index.flip(0), size=size)
        return step_of(model, theirs.x, index, theirs.y, theirs.train_mask)
    graph = our_graph(data, "add" if kind == "ours" and name != "sage" else "keep")
    if kind == "ours":
        config = ModelConfig(name, HIDDEN, num_layers=3, dropout=0.5, norm="none", num_heads=4)
        model = dnn.model_for(config, graph)
    else:
        model = dnn.distribute(model, graph)
    return step_of(model, graph.feats, graph, graph.labels, graph.train_mask)


def check(name: str, data) -> None:
    """Both give the same numbers, without dropout."""
    torch.manual_seed(0)
    model = Stack(name).eval()
    theirs, graph = data.to_pyg(), our_graph(data, "keep")
    expected = model(theirs.x, theirs.edge_index)[torch.from_numpy(graph.owned_ids)]
    torch.testing.assert_close(copy.deepcopy(model)(graph.x, graph), expected, rtol=1e-3, atol=1e-4)


def memory_of(name: str, kind: str, scale: int) -> int:
    """Peak bytes of two steps, in a process of its own."""
    words = [sys.executable, __file__, "--scale", str(scale), "--memory", name, kind]
    done = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def measure_memory(name: str, kind: str, scale: int) -> int:
    """The same, in this process."""
    side(name, kind, graph_of(TINY))()
    step = side(name, kind, graph_of(scale))
    gc.collect()
    give_back_freed_memory()
    Path("/proc/self/clear_refs").write_text("5")  # proc(5): the peak is what is resident now
    before = peak_bytes()
    for _ in range(ROUNDS):
        step()
    return peak_bytes() - before


def graph_of(scale: int):
    return load_graph(f"rmat:scale={scale},edge_factor=16,feats={FEATS},classes={CLASSES}")


def main() -> None:
    """One row for each stack."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scale", type=int, default=16)
    parser.add_argument("--models", nargs="*", default=MODELS, choices=MODELS)
    parser.add_argument("--memory", nargs=2, metavar=("MODEL", "SIDE"))
    options = parser.parse_args()
    warnings.filterwarnings("ignore", module="torch_geometric")  # torch's CSR is in beta
    use_threads(num_threads())  # as `dg.load` does; plain PyG gains from kept memory, too
    if options.memory:
        print(measure_memory(*options.memory, options.scale))
        return
    data = graph_of(options.scale)
    print(f"rmat 2^{options.scale} x 16, {data.edge_list().num_arcs:,} arcs, {num_threads()} threads", flush=True)
    for name in options.models:
        check(name, data)
        kinds = [kind for kind in SIDES if not (kind == "csr" and name == "gat")]
        steps = {kind: side(name, kind, data) for kind in kinds}
        seconds: dict[str, list[float]] = {kind: [] for kind in kinds}
        for turn in range(ROUNDS + 1):
            for kind, step in steps.items():
                started = time.perf_counter()
                step()
                if turn:
                    seconds[kind].append(time.perf_counter() - started)
        medians = {kind: statistics.median(values) for kind, values in seconds.items()}
        theirs = min(kinds[: len(kinds) - 2], key=medians.__getitem__)
        peaks = {kind: memory_of(name, kind, options.scale) for kind in (theirs, "pyg on us", "ours")}
        texts = [f"{kind} {medians[kind]:.3f} s" for kind in kinds]
        print(f"{name:5} {'; '.join(texts)}; MB {', '.join(f'{k} {v / 1e6:,.0f}' for k, v in peaks.items())}")
        print(
            f"      pyg on us: {medians[theirs] / medians['pyg on us']:.2f} times as fast as plain PyG ({theirs}), "
            f"{peaks['pyg on us'] / peaks[theirs]:.2f} of its memory, "
            f"{medians['pyg on us'] / medians['ours']:.2f} times the seconds of our own layers",
            flush=True,
        )


if __name__ == "__main__":
    main()
