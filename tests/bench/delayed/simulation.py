"""cd-1 without our program: scipy matrices, torch layers and one process. Is what cd-1 does to training the method's?

    python tests/bench/delayed/simulation.py PARTS [--lr 0.01] [--epochs 100] [--modes exact,cd-1] [--feats stored]

Only the arcs of the cut are taken from the partition folder. Under cd-1 every arc has an age: 0 between owned rows, 1
from a source halo or to a target halo, 2 where both are halos. A layer of a training step is then

    forward  y = A0 x(e) + A1 x(e - 1) + A2 x(e - 2)        backward  dx = A0' g(e) + A1' g(e - 1) + A2' g(e - 2)

with the first epoch exact. Modes: exact; cd-1; cd-1-forward (gradients exact); cd-1-owned (late gradients left out).
Printed: loss in training and in evaluation mode, accuracy; how far rows of the first hidden layer move from one epoch
to the next, as a share of their norm (evaluation mode, mean over the last 50 epochs); the loss's strongest periods.
"""

import argparse
from itertools import pairwise

import numpy as np
import scipy.sparse as sp
import torch
from torch import nn
from torch.nn import functional

from distgnn.partition import load_part, read_manifest

MODES = ("exact", "cd-1", "cd-1-forward", "cd-1-owned")


def main() -> None:
    """Train every mode from the same weights."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts")
    parser.add_argument("--lr", type=float, default=0.01)
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--hidden-feats", type=int, default=64)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--modes", default="exact,cd-1")
    parser.add_argument("--feats", choices=("stored", "standard"), default="stored", help="standard: unit columns")
    options = parser.parse_args()
    graph = Graph(options.parts)
    if options.feats == "standard":
        graph.feats -= graph.feats.mean(0)
        graph.feats /= (graph.feats.std(0) + 1e-6) * np.sqrt(graph.feats.shape[1])
    for mode in options.modes.split(","):
        train(graph, mode, options)


class Graph:
    """The whole graph in one process: A0, A1, A2 (mean aggregation, by age), features, labels and splits."""

    def __init__(self, parts: str):
        locals_ = [load_part(parts, part) for part in range(read_manifest(parts)["num_parts"])]
        count = locals_[0].num_nodes
        columns = {name: np.zeros(count, np.int64) for name in ("labels", "train_mask", "test_mask", "in_degrees")}
        self.feats = np.zeros((count, locals_[0].feats.shape[1]), np.float32)
        arcs: list[list[np.ndarray]] = [[], [], []]
        for local in locals_:
            owned = local.global_ids[: local.num_owned]
            feats = local.feats
            self.feats[owned] = feats.toarray() if hasattr(feats, "toarray") else feats
            for name, column in columns.items():
                column[owned] = getattr(local, name)[: local.num_owned]
            ids = {("targets", "owned"): owned, ("sources", "owned"): owned}
            ids["targets", "halo"] = local.global_ids[local.target_halo_rows]
            ids["sources", "halo"] = local.global_ids[local.source_halo_rows]
            for name, block in local.blocks.items():
                target, source = name.split("_")
                rows = np.repeat(ids["targets", target], np.diff(block.indptr))
                age = (target == "halo") + (source == "halo")
                arcs[age].append(np.stack([rows, ids["sources", source][block.indices]]))
        scale = (1 / np.maximum(columns["in_degrees"], 1)).astype(np.float32)
        pairs = [np.concatenate(pieces, axis=1) for pieces in arcs]
        self.ages = [sp.csr_matrix((scale[rows], (rows, cols)), (count, count)) for rows, cols in pairs]
        self.turned = [matrix.T.tocsr() for matrix in self.ages]
        self.whole = sum(self.ages[1:], self.ages[0]).tocsr()
        self.labels = torch.from_numpy(columns["labels"])
        self.train, self.test = (torch.from_numpy(columns[name] > 0) for name in ("train_mask", "test_mask"))


class Aggregation:
    """One aggregation of the model under a mode, with the rows of the last two epochs, forward and backward."""

    def __init__(self, graph: Graph, mode: str):
        self.graph, self.mode, self.epoch = graph, mode, 0
        self.before: dict[str, list[np.ndarray]] = {}

    def apply(self, matrices: list, rows: np.ndarray, direction: str) -> np.ndarray:
        exact = self.mode == "exact" or (self.mode == "cd-1-forward" and direction == "backward")
        if self.epoch == 0 or exact:
            self.before[direction] = [rows, rows]
        elif self.mode == "cd-1-owned" and direction == "backward":
            return matrices[0] @ rows
        last, one_earlier = self.before[direction]
        self.before[direction] = [rows.copy(), last]
        return matrices[0] @ rows + matrices[1] @ last + matrices[2] @ one_earlier


class _Aggregate(torch.autograd.Function):
    @staticmethod
    def forward(ctx, rows, aggregation):
        ctx.aggregation = aggregation
        return torch.from_numpy(aggregation.apply(aggregation.graph.ages, rows.detach().numpy(), "forward"))

    @staticmethod
    def backward(ctx, grad):
        return torch.from_numpy(ctx.aggregation.apply(ctx.aggregation.graph.turned, grad.numpy(), "backward")), None


class Sage(nn.Module):
    """GraphSAGE (mean), three layers, layer norm, ReLU, dropout 0.5; the last layer multiplies first, as ours does."""

    def __init__(self, graph: Graph, width: int, mode: str):
        super().__init__()
        widths = [graph.feats.shape[1], width, width, int(graph.labels.max()) + 1]
        pairs = list(pairwise(widths))
        self.neigh = nn.ModuleList(nn.Linear(*pair, bias=False) for pair in pairs)
        self.own = nn.ModuleList(nn.Linear(*pair) for pair in pairs)
        for layer in (*self.neigh, *self.own):
            nn.init.xavier_uniform_(layer.weight, gain=2**0.5)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.graph, self.late = graph, [Aggregation(graph, mode) for _ in range(2)]
        self.feats, self.first = torch.from_numpy(graph.feats), torch.from_numpy(graph.whole @ graph.feats)

    def forward(self) -> torch.Tensor:
        self.hidden = self._then(0, self.first @ self.neigh[0].weight.T + self.own[0](self.feats))
        second = self.neigh[1](self._aggregate(0, self.hidden)) + self.own[1](self.hidden)
        rows = self._then(1, second)
        return self._aggregate(1, self.neigh[2](rows)) + self.own[2](rows)

    def _then(self, layer: int, rows: torch.Tensor) -> torch.Tensor:
        return functional.dropout(torch.relu(self.norms[layer](rows)), 0.5, self.training)

    def _aggregate(self, layer: int, rows: torch.Tensor) -> torch.Tensor:
        if self.training:
            return _Aggregate.apply(rows, self.late[layer])
        return torch.from_numpy(self.graph.whole @ rows.numpy())


def train(graph: Graph, mode: str, options: argparse.Namespace) -> None:
    """One run, and what is printed of it."""
    if mode not in MODES:
        raise SystemExit(f"unknown mode {mode}: choose from {', '.join(MODES)}")
    torch.manual_seed(options.seed)
    model = Sage(graph, options.hidden_feats, mode)
    optimizer = torch.optim.Adam(model.parameters(), lr=options.lr)
    losses, moved, before = [], [], None
    for epoch in range(options.epochs):
        for late in model.late:
            late.epoch = epoch
        model.train()
        loss = functional.cross_entropy(model()[graph.train], graph.labels[graph.train])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        model.eval()
        with torch.no_grad():
            logits = model()
        losses.append(functional.cross_entropy(logits[graph.train], graph.labels[graph.train]).item())
        if before is not None:
            moved.append(((model.hidden - before).norm() / model.hidden.norm()).item())
        before = model.hidden
        if (epoch + 1) % max(1, options.epochs // 5) == 0:
            right = (logits[graph.test].argmax(1) == graph.labels[graph.test]).float().mean().item()
            says = f"loss {loss.item():.3f}, in evaluation {losses[-1]:.3f}, test {100 * right:.1f} %"
            print(f"{mode}, epoch {epoch + 1}: {says}", flush=True)
    last = np.array(losses[-48:])
    power = np.abs(np.fft.rfft(last - np.polyval(np.polyfit(np.arange(len(last)), last, 2), np.arange(len(last))))) ** 2
    periods = [
        f"{len(last) / place:.1f} ({power[place] / power.sum():.2f})" for place in np.argsort(-power)[:3] if place
    ]
    swing = np.abs(np.diff(last)).mean()
    says = f"rows move by {np.mean(moved[-50:]):.3f} per epoch, the loss by {swing:.3f}"
    print(f"{mode}: {says}; periods {', '.join(periods)}", flush=True)


if __name__ == "__main__":
    main()
