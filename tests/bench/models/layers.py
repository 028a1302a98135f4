"""Layers with edge features and relations: ours beside DGL's own, forward and backward, time and peak memory.

    python tests/bench/models/layers.py                 # 3 min on 2 cores
    python tests/bench/models/layers.py --scale 14      # smaller

RMAT with 2^scale vertices and 16 edges per vertex; width 64, 8 edge features, 4 relations, 4 heads x 16. Seconds: the
median of 5 rounds in which both sides run in turn, after one round to warm up. Memory: peak resident bytes of a process
of its own that runs one side once, above those before it.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import torch
from mpi4py import MPI

from distgnn import kernels, ops
from distgnn import nn as dnn
from distgnn.config import num_threads
from distgnn.datasets import load_graph
from distgnn.graph.dist_graph import DistGraph
from distgnn.nn.relation_norm import relation_norm
from distgnn.partition import VertexCut, local_part
from distgnn.system.other_libraries import import_dgl

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "epoch"))
from contestant import peak_bytes

WIDTH, EDGE_FEATS, RELATIONS, ROUNDS = 64, 8, 4, 5


def make_graph(scale: int):
    """The graph with edge features and relations."""
    data = load_graph(f"rmat:scale={scale},edge_factor=16,feats={WIDTH},classes=8")
    random = np.random.default_rng(0)
    data.edge_feats = random.standard_normal((data.num_edges, EDGE_FEATS)).astype(np.float32)
    data.edge_types = random.integers(0, RELATIONS, data.num_edges)
    return data


def our_graph(data) -> DistGraph:
    edges = data.edge_list()
    cut = VertexCut(1, np.zeros(edges.num_edges, np.int64), np.zeros(data.num_nodes, np.int64))
    return DistGraph(local_part(data, edges, cut, 0), MPI.COMM_SELF)


def sides(layer: str, data, only: str | None = None) -> dict:
    """Name -> what runs one forward and backward pass. `only` makes that one alone."""
    dgl_nn = import_dgl().nn
    wide = {"gine": 1}.get(layer, 0)
    makers = {
        "edgegat": lambda nn: nn.EdgeGATConv(WIDTH, EDGE_FEATS, 16, 4, residual=False, allow_zero_in_degree=True),
        "gine": lambda nn: nn.GINEConv(torch.nn.Linear(WIDTH, WIDTH)),
        "rgcn": lambda nn: nn.RelGraphConv(WIDTH, WIDTH, RELATIONS),
    }

    def step(module, graph, feats, *arguments):
        def run() -> None:
            rows = feats.clone().requires_grad_()
            module(graph, rows, *arguments).sum().backward()

        return run

    found = {}
    for name in ("ours", "dgl"):
        if only not in (None, name):
            continue
        torch.manual_seed(0)
        graph = our_graph(data) if name == "ours" else data.to_dgl()
        module = makers[layer](dnn if name == "ours" else dgl_nn)
        feats = graph.ndata["feat"]
        edge_feats = graph.edata["feat"].repeat(1, WIDTH // EDGE_FEATS) if wide else graph.edata["feat"]
        arguments = (edge_feats,)
        if layer == "rgcn":
            arguments = (graph.edata["etype"], torch.ones(graph.num_edges(), 1))
            if name == "ours":
                arguments = (ops.RelationArcs(graph, graph.edata["etype"], RELATIONS, relation_norm(graph)),)
        found[name] = step(module, graph, feats, *arguments)
    return found


def memory_of(layer: str, side: str, scale: int) -> int:
    """Peak bytes of one pass, in a process of its own."""
    words = [sys.executable, __file__, "--scale", str(scale), "--memory", layer, side]
    done = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    """One row for each layer."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scale", type=int, default=16)
    parser.add_argument("--memory", nargs=2, metavar=("LAYER", "SIDE"))
    options = parser.parse_args()
    torch.set_num_threads(num_threads())
    kernels.set_num_threads(num_threads())
    data = make_graph(options.scale)
    if options.memory:
        layer, side = options.memory
        run = sides(layer, data, side)[side]
        before = peak_bytes()
        run()
        print(peak_bytes() - before)
        return
    print(f"rmat 2^{options.scale} x 16, {data.edge_list().num_arcs:,} arcs, {num_threads()} threads", flush=True)
    for layer in ("edgegat", "gine", "rgcn"):
        runs = sides(layer, data)
        seconds = {name: [] for name in runs}
        for round_number in range(ROUNDS + 1):
            for name, run in runs.items():
                started = time.perf_counter()
                run()
                if round_number:
                    seconds[name].append(time.perf_counter() - started)
        medians = {name: statistics.median(values) for name, values in seconds.items()}
        peaks = {name: memory_of(layer, name, options.scale) for name in runs}
        texts = [f"{name} {medians[name]:.3f} s, {peaks[name] / 1e6:,.0f} MB" for name in runs]
        ratio = (
            f"{medians['dgl'] / medians['ours']:.2f} times as fast, {peaks['ours'] / peaks['dgl']:.2f} of the memory"
        )
        print(f"{layer:8} {'; '.join(texts)}; {ratio}", flush=True)


if __name__ == "__main__":
    main()
