"""The same training in plain DGL, in one process: what our numbers are compared with.

    python tests/bench/end_to_end/dgl_reference.py cora --data-root ../shared/data --self-loops add \\
        --normalize-feats row --model gcn --num-layers 2 --hidden-feats 16 --norm none --weight-decay 5e-4 --runs 5

Only graphs are read with our code; layers, dropout, loss and evaluation are DGL's and PyTorch's. Prints one JSON line:
a list of what held at the best validation epoch of each run. Evaluations on the way go to standard error.
"""

import argparse
import importlib
import json
import sys
from itertools import pairwise

import torch
from torch import nn
from torch.nn import functional

from distgnn.datasets import load_graph
from distgnn.system.other_libraries import import_dgl

SPLITS = {"train": "train_mask", "valid": "val_mask", "test": "test_mask"}


class Stack(nn.Module):
    """conv -> norm -> ReLU -> dropout, and a bare convolution at the end."""

    def __init__(self, dgl, model: str, widths: list[int], dropout: float, norm: str):
        super().__init__()
        make = {
            "sage": lambda a, b: dgl.nn.SAGEConv(a, b, "mean"),
            "gcn": lambda a, b: dgl.nn.GraphConv(a, b, allow_zero_in_degree=True),
        }[model]
        self.convs = nn.ModuleList(make(*pair) for pair in pairwise(widths))
        self.norms = nn.ModuleList(nn.LayerNorm(width) if norm == "layer" else nn.Identity() for width in widths[1:-1])
        self.dropout = nn.Dropout(dropout)

    def forward(self, graph, feats: torch.Tensor) -> torch.Tensor:
        for conv, norm in zip(self.convs, self.norms, strict=False):
            feats = self.dropout(torch.relu(norm(conv(graph, feats))))
        return self.convs[-1](graph, feats)


def accuracies(logits: torch.Tensor, graph) -> dict[str, float]:
    """Share of right answers in each split."""
    right = logits.argmax(1) == graph.ndata["label"]
    return {name: right[graph.ndata[mask]].float().mean().item() for name, mask in SPLITS.items()}


def run(options, dgl, graph, num_classes: int, seed: int) -> dict:
    """Train once; what held at the best validation epoch."""
    torch.manual_seed(seed)
    feats, labels, train = graph.ndata["feat"], graph.ndata["label"], graph.ndata["train_mask"]
    widths = [feats.shape[1], *[options.hidden_feats] * (options.num_layers - 1), num_classes]
    model = Stack(dgl, options.model, widths, options.dropout, options.norm)
    optimizer = torch.optim.Adam(model.parameters(), lr=options.lr, weight_decay=options.weight_decay)
    best = {"valid": -1.0}
    for epoch in range(options.epochs):
        model.train()
        loss = functional.cross_entropy(model(graph, feats)[train], labels[train])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if epoch == options.epochs - 1 or (epoch + 1) % options.eval_every == 0:
            model.eval()
            with torch.no_grad():
                now = accuracies(model(graph, feats), graph)
            found = {"seed": seed, "epoch": epoch, "loss": loss.item(), **now}
            print(json.dumps(found), file=sys.stderr, flush=True)
            if found["valid"] > best["valid"]:
                best = found
    return best


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source")
    parser.add_argument("--data-root")
    parser.add_argument("--direction", default="stored", choices=("stored", "both", "reversed"))
    parser.add_argument("--self-loops", default="keep", choices=("keep", "add", "remove"))
    parser.add_argument("--normalize-feats", default="none", choices=("none", "row"))
    parser.add_argument("--model", default="sage", choices=("sage", "gcn"))
    parser.add_argument("--norm", default="layer", choices=("layer", "none"))
    for name, default in {"num-layers": 3, "hidden-feats": 256, "epochs": 200, "eval-every": 5, "seed": 0}.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    for name, default in {"dropout": 0.5, "lr": 0.01, "weight-decay": 0.0}.items():
        parser.add_argument(f"--{name}", type=float, default=default)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--threads", type=int)
    return parser.parse_args()


def main() -> None:
    """Load, train `--runs` times, print."""
    options = parse()
    if options.threads:
        torch.set_num_threads(options.threads)
    dgl = import_dgl()
    importlib.import_module("dgl.nn")
    data = load_graph(options.source, options.data_root)
    if options.normalize_feats != "none":
        data = data.normalize_feats(options.normalize_feats)
    graph = data.to_dgl(data.edge_list(options.direction, options.self_loops))
    runs = [run(options, dgl, graph, data.num_classes, options.seed + number) for number in range(options.runs)]
    print(json.dumps(runs))


if __name__ == "__main__":
    main()
