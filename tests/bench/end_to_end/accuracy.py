"""Test accuracy of the program on one and two ranks, against the same recipe in plain DGL in this process.

    python tests/bench/end_to_end/accuracy.py cora citeseer            # 10 seeds each; 5 min on 2 cores
    python tests/bench/end_to_end/accuracy.py arxiv --seeds 1          # 100 epochs; DGL about 25 min, ours 3 to 6 each
    python tests/bench/end_to_end/accuracy.py arxiv --sides 1,2        # without DGL

Test accuracy in percent at the best validation epoch (evaluated every 5), mean ± standard deviation over seeds, and the
mean of the first five seeds. Prints a row per side: "1 rank", "2 ranks", "DGL". Of DGL only the graph is read with
our code; layers, dropout, loss and evaluation are DGL's and PyTorch's.
"""

import argparse
import importlib
import statistics
import tempfile
from itertools import pairwise
from pathlib import Path

import torch
from program import DATA_ROOT, machine, partition, train_seeds, words_of
from torch import nn
from torch.nn import functional

from distgnn.datasets import load_graph
from distgnn.system.other_libraries import import_dgl

SMALL_CUT = {"self_loops": "add", "normalize_feats": "row"}
SMALL = {"model": "gcn", "num_layers": 2, "hidden_feats": 16, "norm": "none", "weight_decay": 5e-4, "epochs": 200}
ARXIV = {"model": "sage", "num_layers": 3, "hidden_feats": 256, "norm": "layer", "weight_decay": 0.0, "epochs": 100}
RECIPES = {  # name -> (source, options of partition, options of train)
    "cora": ("cora", SMALL_CUT, SMALL),
    "citeseer": ("citeseer", SMALL_CUT, SMALL),
    "arxiv": ("ogbn-arxiv", {"direction": "both"}, ARXIV),
}
EVAL_EVERY, LR, DROPOUT = 5, 0.01, 0.5  # the program's defaults


class Stack(nn.Module):
    """conv -> norm -> ReLU -> dropout, and a bare convolution at the end."""

    def __init__(self, dgl, recipe: dict, widths: list[int]):
        super().__init__()
        make = {
            "sage": lambda a, b: dgl.nn.SAGEConv(a, b, "mean"),
            "gcn": lambda a, b: dgl.nn.GraphConv(a, b, allow_zero_in_degree=True),
        }[recipe["model"]]
        self.convs = nn.ModuleList(make(*pair) for pair in pairwise(widths))
        norm = nn.LayerNorm if recipe["norm"] == "layer" else nn.Identity
        self.norms, self.dropout = nn.ModuleList(map(norm, widths[1:-1])), nn.Dropout(DROPOUT)

    def forward(self, graph, feats: torch.Tensor) -> torch.Tensor:
        for conv, norm in zip(self.convs, self.norms, strict=False):
            feats = self.dropout(torch.relu(norm(conv(graph, feats))))
        return self.convs[-1](graph, feats)


def in_dgl(source: str, cut: dict, recipe: dict, seeds: int) -> list[float]:
    """Test accuracy of each seed in plain DGL."""
    torch.set_num_threads(1)
    dgl = import_dgl()
    importlib.import_module("dgl.nn")
    data = load_graph(source, DATA_ROOT)
    if "normalize_feats" in cut:
        data = data.normalize_feats(cut["normalize_feats"])
    graph = data.to_dgl(data.edge_list(cut.get("direction", "stored"), cut.get("self_loops", "keep")))
    return [_train(dgl, graph, data.num_classes, recipe, seed) for seed in range(seeds)]


def _train(dgl, graph, num_classes: int, recipe: dict, seed: int) -> float:
    """Test accuracy at the best validation epoch."""
    torch.manual_seed(seed)
    feats, labels, train = graph.ndata["feat"], graph.ndata["label"], graph.ndata["train_mask"]
    widths = [feats.shape[1], *[recipe["hidden_feats"]] * (recipe["num_layers"] - 1), num_classes]
    model, best = Stack(dgl, recipe, widths), (-1.0, 0.0)
    optimizer = torch.optim.Adam(model.parameters(), lr=LR, weight_decay=recipe["weight_decay"])
    for epoch in range(recipe["epochs"]):
        model.train()
        loss = functional.cross_entropy(model(graph, feats)[train], labels[train])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if epoch == recipe["epochs"] - 1 or (epoch + 1) % EVAL_EVERY == 0:
            model.eval()
            with torch.no_grad():
                right = model(graph, feats).argmax(1) == labels
            valid, test = (right[graph.ndata[name]].float().mean().item() for name in ("val_mask", "test_mask"))
            best = max(best, (valid, test), key=lambda pair: pair[0])
    return best[1]


def print_seeds(side: str, shares: list[float]) -> None:
    """A row: mean and standard deviation over seeds, in percent, the mean of the first five, and each."""
    percent = [100 * share for share in shares]
    std = statistics.stdev(percent) if len(percent) > 1 else 0.0
    first, each = statistics.fmean(percent[:5]), " ".join(f"{value:.2f}" for value in percent)
    print(f"{side:>8}  {statistics.fmean(percent):6.2f} ± {std:.2f}   first five {first:6.2f}   {each}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="+", choices=RECIPES)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--sides", default="1,2,dgl", help="rank counts and dgl, with commas")
    options = parser.parse_args()
    print(machine(), flush=True)
    for name in options.names:
        source, cut, recipe = RECIPES[name]
        print(f"\n{name}: {source} {cut}; {recipe}; {options.seeds} seeds", flush=True)
        with tempfile.TemporaryDirectory() as scratch:
            for side in options.sides.split(","):
                if side == "dgl":
                    print_seeds("DGL", in_dgl(source, cut, recipe, options.seeds))
                    continue
                parts = Path(scratch, f"parts-{side}")
                partition(source, int(side), parts, *words_of(cut))
                runs = train_seeds(parts, Path(scratch, f"run-{side}"), range(options.seeds), *words_of(recipe))
                print_seeds(f"{side} rank{'s' * (side != '1')}", [run["test_accuracy"] for run in runs])


if __name__ == "__main__":
    main()
