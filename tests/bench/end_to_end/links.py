"""Link prediction on one and two ranks, against plain PyTorch: the same split, encoder, decoder, loss and optimiser.

    python tests/bench/end_to_end/links.py facebook-pages dblp                    # 5 seeds of 200 epochs each
    python tests/bench/end_to_end/links.py dblp --seeds 1 --epochs 10 --sides 1,torch

5 % of the edges are for validation, 10 % for testing, as many pairs without an edge as negatives. Encoder: two mean
SAGE layers of 64, layer norm, dropout 0.5; a dot product; Adam 0.01. The plain side draws its negatives and masks
from torch's generator, so seeds differ from side to side by chance alone. Test MRR and ROC-AUC in percent at the
best validation MRR (evaluated every 5 epochs), mean ± standard deviation over seeds.
"""

import argparse
import tempfile
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from program import partition, print_machine, print_seeds, train_seeds
from scipy import sparse
from torch import nn
from torch.nn import functional

from distgnn.datasets import GraphData
from distgnn.partition.repartition import load_whole

HIDDEN, DROPOUT, RATE, EVERY = 64, 0.5, 0.01, 5
RECIPE = ["--task", "link", "--model", "sage", "--num-layers", 2, "--hidden-feats", HIDDEN, "--dropout", DROPOUT]
RECIPE += ["--lr", RATE, "--eval-every", EVERY]
METRICS = ("test_mrr", "test_rocauc")


class PlainSAGE(nn.Module):
    """The encoder in plain PyTorch: features and the mean over neighbours are products with torch's CSR matrices."""

    def __init__(self, in_feats: int):
        super().__init__()
        widths = [in_feats, HIDDEN, HIDDEN]
        self.own = nn.ModuleList(nn.Linear(*pair) for pair in pairwise(widths))
        self.others = nn.ModuleList(nn.Linear(*pair, bias=False) for pair in pairwise(widths))
        self.norm = nn.LayerNorm(HIDDEN)
        for layer in (*self.own, *self.others):
            nn.init.xavier_uniform_(layer.weight, gain=nn.init.calculate_gain("relu"))

    def forward(self, mean: "Sparse", feats: "Sparse") -> torch.Tensor:
        (own, own_next), (others, others_next) = self.own, self.others
        rows = feats.times(own.weight.t()) + own.bias + mean.times(feats.times(others.weight.t()))
        rows = functional.dropout(torch.relu(self.norm(rows)), DROPOUT, self.training)
        return own_next(rows) + mean.times(others_next(rows))


class Sparse:
    """A constant matrix and its transpose in torch's CSR: torch's own gradient of a sparse product takes 20 times as
    long as the product."""

    def __init__(self, matrix: sparse.csr_array):
        self.matrix, self.turned = _in_torch(matrix), _in_torch(sparse.csr_array(matrix.T))

    def times(self, rows: torch.Tensor) -> torch.Tensor:
        return _Times.apply(rows, self)


def _in_torch(matrix: sparse.csr_array) -> torch.Tensor:
    arrays = matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64), matrix.data.astype(np.float32)
    return torch.sparse_csr_tensor(*map(torch.from_numpy, arrays), size=matrix.shape)


class _Times(torch.autograd.Function):
    @staticmethod
    def forward(ctx, rows, factor):
        ctx.factor = factor
        return factor.matrix @ rows

    @staticmethod
    def backward(ctx, grad):
        return ctx.factor.turned @ grad, None


def in_torch(graph: GraphData, seed: int, epochs: int) -> dict[str, float]:
    """Metrics of one seed in plain PyTorch."""
    torch.manual_seed(seed)
    positive = torch.from_numpy(np.asarray(graph.train_edges))
    arcs = torch.cat([positive, positive[positive[:, 0] != positive[:, 1]].flip(1)]).numpy()
    degrees = np.bincount(arcs[:, 1], minlength=graph.num_nodes)
    shape = graph.num_nodes, graph.num_nodes
    mean = Sparse(sparse.csr_array((1 / degrees[arcs[:, 1]], (arcs[:, 1], arcs[:, 0])), shape))
    feats = Sparse(sparse.csr_array(graph.feats))
    model = PlainSAGE(graph.num_feats)
    optimizer = torch.optim.Adam(model.parameters(), lr=RATE)
    best: dict[str, float] = {"valid_mrr": -1.0}
    for epoch in range(epochs):
        model.train()
        optimizer.zero_grad()
        rows = model(mean, feats)
        negative = torch.randint(graph.num_nodes, positive.shape)
        loss = (
            functional.softplus(-_scores(rows, positive)).mean() + functional.softplus(_scores(rows, negative)).mean()
        )
        loss.backward()
        optimizer.step()
        if (epoch + 1) % EVERY == 0 or epoch + 1 == epochs:
            found = _evaluate(model.eval(), graph, mean, feats)
            best = found if found["valid_mrr"] > best["valid_mrr"] else best
    return best


def _scores(rows: torch.Tensor, pairs: torch.Tensor) -> torch.Tensor:
    return (functional.embedding(pairs[:, 0], rows) * functional.embedding(pairs[:, 1], rows)).sum(1)


@torch.no_grad()
def _evaluate(model: nn.Module, graph: GraphData, *inputs: Sparse) -> dict[str, float]:
    """MRR and ROC-AUC against negatives for all, from ranks in one sorted list."""
    rows, found = model(*inputs), {}
    for split in ("valid", "test"):
        pairs = (torch.from_numpy(np.asarray(getattr(graph, f"{split}_{kind}"))) for kind in ("edges", "negatives"))
        positive, negative = (_scores(rows, one) for one in pairs)
        ordered = negative.sort().values
        below, up_to = (torch.searchsorted(ordered, positive, right=right).double() for right in (False, True))
        ranks = 1 + len(ordered) - (below + up_to) / 2
        found[f"{split}_mrr"] = (1 / ranks).mean().item()
        found[f"{split}_rocauc"] = ((below + up_to) / 2).mean().item() / len(ordered)
    return found


def main() -> None:
    """A table for each graph named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="+", help="graphs with sparse features: facebook-pages, dblp")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=200)
    parser.add_argument("--sides", default="1,2,torch", help="rank counts and torch, with commas")
    options = parser.parse_args()
    print_machine()
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    for name in options.names:
        print(f"\n{name}: {' '.join(map(str, RECIPE))}; {options.epochs} epochs, {options.seeds} seeds", flush=True)
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch)
            for side in options.sides.split(","):
                parts = folder / f"parts-{side if side != 'torch' else 1}"
                partition(name, 1 if side == "torch" else int(side), parts, "--link-split", "0.05,0.1")
                if side == "torch":
                    graph = load_whole(parts).graph
                    runs = [in_torch(graph, seed, options.epochs) for seed in seeds]
                else:
                    words = [*RECIPE, "--epochs", options.epochs]
                    runs = train_seeds(parts, folder / f"run-{side}", seeds, *words)
                for metric in METRICS:
                    name = "PyTorch" if side == "torch" else f"{side} rank{'s' * (side != '1')}"
                    print_seeds(name, metric, [one[metric] for one in runs])


if __name__ == "__main__":
    main()
