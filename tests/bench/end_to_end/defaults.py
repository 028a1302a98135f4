"""Test accuracy of `distgnn train` without options beside SGC, GCN and `--recipe fast`, on one rank.

    python tests/bench/end_to_end/defaults.py cora dblp tolokers          # some minutes
    python tests/bench/end_to_end/defaults.py cora --seeds 3 --try "--lr 0.01 --dropout 0.3"

A row per graph: test metric in percent at the best validation epoch, the epoch of the best, and seconds of epochs, as
means of all seeds.
GCN is Kipf's: two layers, self-loops, rows divided by their norm, weight decay. SGC (Wu et al., ICML'19) is a logistic
regression on features that were averaged twice over neighbours, in float32, with the weight decay of the best
validation among three. `--try` adds contestants of other options.
"""

import argparse
import shlex
import tempfile
from pathlib import Path

import numpy as np
import scipy.sparse as sp
import torch
from program import DATA_ROOT, partition, print_machine, train

from distgnn.datasets import GraphData, load_graph

GRAPHS = ("cora", "citeseer", "amazon-photo", "dblp", "tolokers", "amazon-computers", "facebook-pages", "coauthor-cs")
GCN = "--model gcn --num-layers 2 --hidden-feats 64 --norm none --weight-decay 5e-4 --lr 0.01 --feat-norm row-l2"
DECAYS = (0.0, 1e-5, 5e-4)
HOPS, STEPS, RATE = 2, 200, 0.1


def sgc(graph: GraphData) -> float:
    """Test accuracy of SGC."""
    edges = graph.edge_list("both", "add")
    sources, targets, _ = edges.arcs()
    adjacency = sp.csr_matrix((np.ones(len(sources), np.float32), (targets, sources)), (graph.num_nodes,) * 2)
    scale = sp.diags(1 / np.sqrt(np.maximum(adjacency.sum(1).A1, 1))).astype(np.float32)
    feats = sp.csr_matrix(graph.feats, dtype=np.float32)
    norms = np.sqrt(feats.multiply(feats).sum(1).A1)
    rows = sp.diags(1 / np.maximum(norms, 1e-12)).astype(np.float32) @ feats
    for _ in range(HOPS):
        rows = scale @ (adjacency @ (scale @ rows))
    rows = torch.from_numpy(rows.toarray())
    masks = {name: torch.from_numpy(mask) for name, mask in graph.split_masks().items()}
    labels = torch.from_numpy(np.array(graph.labels))
    found = []
    for decay in DECAYS:
        torch.manual_seed(0)
        layer = torch.nn.Linear(rows.shape[1], graph.num_classes)
        optimizer = torch.optim.Adam(layer.parameters(), RATE, weight_decay=decay)
        train_rows, train_labels = rows[masks["train"]], labels[masks["train"]]
        for _ in range(STEPS):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(layer(train_rows), train_labels).backward()
            optimizer.step()
        with torch.no_grad():
            right = layer(rows).argmax(1) == labels
        found.append([float(right[masks[name]].float().mean()) for name in ("valid", "test")])
    return max(found)[1]


def trained(name: str, words: str, loops: str, scratch: Path, seeds: int) -> tuple[float, float, float]:
    """Test metric, best epoch (from 1) and seconds of all epochs of `distgnn train`, as means of seeds."""
    parts = scratch / f"{name}-{loops}"
    partition(name, 1, parts, "--self-loops", loops, "--method", "random")
    runs = [train(parts, scratch / "run", *shlex.split(words), "--threads", 1, "--seed", n) for n in range(seeds)]
    found = [(one["test_accuracy"], one["best_epoch"] + 1, sum(one["epoch_seconds"])) for one in runs]
    metric, best, seconds = np.mean(found, axis=0)
    return float(metric), float(best), float(seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("graphs", nargs="*", default=GRAPHS)
    parser.add_argument("--try", dest="tried", action="append", default=[])
    parser.add_argument("--only-tried", action="store_true")
    parser.add_argument("--seeds", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(1)
    print_machine()
    known = [("defaults", "", "keep"), ("GCN", GCN, "add"), ("recipe", "--recipe fast", "keep")]
    contestants = [*known[: 0 if args.only_tried else None], *((words, words, "keep") for words in args.tried)]
    for name in args.graphs:
        if not args.only_tried:
            print(f"{name:18} {100 * sgc(load_graph(name, DATA_ROOT)):6.2f}                       SGC", flush=True)
        with tempfile.TemporaryDirectory() as scratch:
            for title, words, loops in contestants:
                metric, best, seconds = trained(name, words, loops, Path(scratch), args.seeds)
                print(f"{name:18} {100 * metric:6.2f}  best {best:4.0f}  {seconds:6.1f} s  {title}", flush=True)


if __name__ == "__main__":
    main()
