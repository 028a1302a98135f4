"""One contestant of against_dgl.py, in a process of its own: its peak memory is nobody else's.

    python tests/bench/epoch/contestant.py '{"name": "dgl", "parts": "parts/", "model": {...}, "seed": 0}'

It reads commands from standard input ("train 2", "quit") and answers each with one line of JSON. All contestants train
the same stack with the same weights, dropout rate, loss and Adam on the one part of the folder; "bound" runs nothing
but the matrix products of an epoch, into results that are there already.

Legend: V vertices, E arcs.
"""

import json
import re
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import bound
import torch
from torch import nn
from torch.nn import functional

from distgnn.config import ModelConfig, TrainConfig, num_threads
from distgnn.errors import RunError
from distgnn.nn import build_model
from distgnn.partition import load_part

CHECKED_LOSS = "loss_without_dropout"  # of the first weights: the same for all, or they are not one model


class Ours:
    """distgnn, in float32 or bfloat16."""

    def __init__(self, order: dict, dtype: str = "float32"):
        from distgnn.graph.loader import load
        from distgnn.train import Trainer

        sparse = ModelConfig(**order["model"]).takes_sparse_feats
        self.graph = load(order["parts"], dtype=dtype, seed=order["seed"], sparse_feats=sparse, plain_tensors=True)
        self.model = _our_model(order, self.graph.num_feats, self.graph.num_classes)
        self.trainer = Trainer(self.model, self.graph, TrainConfig(seed=order["seed"]))
        self.epoch = 0

    def train_epoch(self) -> float:
        self.epoch += 1
        return self.trainer.train_epoch(self.epoch - 1)["loss"]

    def start_loss(self) -> float:
        from distgnn.train.metrics import rank_loss

        return float(rank_loss(self.graph, self.trainer.predict()))


class TorchContestant:
    """What DGL and PyTorch Geometric share: a stack written as their examples write it, and torch's Adam."""

    make_convs: Callable[[], Iterator[nn.Module]]  # these four are methods of the subclasses
    copy_weights: Callable[[nn.Module, dict[str, torch.Tensor]], None]
    make_graph: Callable[[torch.Tensor, torch.Tensor, int], Any]
    convolve: Callable[[nn.Module, torch.Tensor], torch.Tensor]

    def __init__(self, order: dict):
        torch.set_num_threads(num_threads())
        local = load_part(order["parts"], 0)
        csr = local.blocks["owned_owned"]
        feats = local.feats.toarray() if hasattr(local.feats, "toarray") else local.feats
        self.feats, self.labels = torch.tensor(feats), torch.tensor(local.labels)
        self.train = torch.tensor(local.train_mask) & (self.labels >= 0)
        ours = _our_model(order, self.feats.shape[1], local.graph["num_classes"])
        config = ModelConfig(**order["model"])
        hidden = [config.hidden_feats] * (config.num_layers - 1)
        self.widths = [self.feats.shape[1], *hidden, local.graph["num_classes"]]
        self.config = config
        self.convs = nn.ModuleList(self.make_convs())
        for conv, reference in zip(self.convs, cast(nn.ModuleList, ours.convs), strict=True):
            self.copy_weights(conv, reference.state_dict())
        norms = (nn.LayerNorm(width) if config.norm == "layer" else nn.Identity() for width in hidden)
        self.norms = nn.ModuleList(norms)
        self.drop = nn.Dropout(config.dropout)
        self.graph = self.make_graph(torch.tensor(csr.indptr), torch.tensor(csr.indices), len(self.feats))
        parameters = [*self.convs.parameters(), *self.norms.parameters()]
        self.optimizer = torch.optim.Adam(parameters, lr=TrainConfig().lr)

    def forward(self) -> torch.Tensor:
        feats = self.feats
        for conv, norm in zip(self.convs, self.norms, strict=False):
            feats = self.drop(torch.relu(norm(self.convolve(conv, feats).flatten(1))))
        out = self.convolve(self.convs[-1], feats)
        return out.mean(1) if out.dim() == 3 else out

    def loss(self) -> torch.Tensor:
        return functional.cross_entropy(self.forward()[self.train], self.labels[self.train])

    def train_epoch(self) -> float:
        self.drop.train()
        loss = self.loss()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def start_loss(self) -> float:
        self.drop.eval()
        with torch.no_grad():
            return self.loss().item()


class Dgl(TorchContestant):
    """Stock DGL."""

    def __init__(self, order: dict):
        from distgnn.system.other_libraries import import_dgl

        self.dgl = import_dgl()
        __import__("dgl.nn")
        super().__init__(order)

    def make_convs(self) -> Iterator[Any]:
        layers, heads = self.dgl.nn, self.config.num_heads
        for layer, (a, b) in enumerate(pairwise(self.widths)):
            if self.config.name == "sage":
                yield layers.SAGEConv(a, b, "mean")
            elif self.config.name == "gcn":
                yield layers.GraphConv(a, b, allow_zero_in_degree=True)
            elif self.config.name == "gin":
                yield layers.GINConv(two_layers(a, b), "sum", learn_eps=True)
            else:
                last = layer == len(self.widths) - 2
                yield layers.GATConv(a, b if last else b // heads, heads, allow_zero_in_degree=True)

    def copy_weights(self, conv: Any, weights: dict) -> None:
        conv.load_state_dict(weights, strict=False)

    def make_graph(self, indptr: Any, indices: Any, num_nodes: Any) -> Any:
        targets = torch.repeat_interleave(torch.arange(num_nodes), indptr.diff())
        return self.dgl.graph((indices.long(), targets), num_nodes=num_nodes)

    def convolve(self, conv: Any, feats: Any) -> Any:
        return conv(self.graph, feats)


class Pyg(TorchContestant):
    """PyTorch Geometric on a torch.sparse CSR adjacency, or with `edges` on an edge list (attention always)."""

    def __init__(self, order: dict, edges: bool = False):
        import torch_geometric.nn as layers

        self.layers, self.edges = layers, edges
        super().__init__(order)

    def make_convs(self) -> Iterator[Any]:
        for layer, (a, b) in enumerate(pairwise(self.widths)):
            last = layer == len(self.widths) - 2
            if self.config.name == "sage":
                yield self.layers.SAGEConv(a, b, aggr="mean")
            elif self.config.name == "gcn":
                yield self.layers.GCNConv(a, b, add_self_loops=False, cached=True)
            elif self.config.name == "gin":
                yield self.layers.GINConv(two_layers(a, b), train_eps=True)
            else:
                heads = self.config.num_heads
                width = b if last else b // heads
                bias = {"concat": True, "bias": True}
                yield self.layers.GATConv(a, width, heads, add_self_loops=False, **bias)

    def copy_weights(self, conv: Any, weights: dict) -> None:
        names = {
            "sage": {"fc_neigh.weight": "lin_l.weight", "fc_self.bias": "lin_l.bias", "fc_self.weight": "lin_r.weight"},
            "gcn": {"weight": "lin.weight", "bias": "bias"},
            "gin": {"eps": "eps"} | {name: name.replace("apply_func", "nn") for name in weights if "apply" in name},
            "gat": {"fc.weight": "lin.weight", "attn_l": "att_src", "attn_r": "att_dst", "bias": "bias"},
        }[self.config.name]
        turned = weights | ({"weight": weights["weight"].T.contiguous()} if "weight" in weights else {})
        conv.load_state_dict({theirs: turned[ours] for ours, theirs in names.items()})

    def make_graph(self, indptr: Any, indices: Any, num_nodes: Any) -> Any:
        if self.config.name == "gat" or self.edges:
            targets = torch.repeat_interleave(torch.arange(num_nodes), indptr.diff())
            return torch.stack([indices.long(), targets])
        ones = torch.ones(len(indices))
        warnings.filterwarnings("ignore", message="Sparse")  # torch on its own sparse tensors
        return torch.sparse_csr_tensor(indptr, indices.long(), ones, (num_nodes, num_nodes))

    def convolve(self, conv: Any, feats: Any) -> Any:
        out = conv(feats, self.graph)
        last = conv is self.convs[-1] and self.config.name == "gat"
        return out.view(len(out), self.config.num_heads, -1) if last else out


def two_layers(in_feats: int, out_feats: int) -> nn.Sequential:
    """What GIN does with a sum."""
    return nn.Sequential(nn.Linear(in_feats, out_feats), nn.ReLU(), nn.Linear(out_feats, out_feats))


def _our_model(order: dict, in_feats: int, num_classes: int) -> nn.Module:
    torch.manual_seed(order["seed"])
    return build_model(ModelConfig(**order["model"]), in_feats, num_classes)


CONTESTANTS: dict[str, Callable[[dict], Any]] = {
    "dgl": Dgl,
    "pyg": Pyg,
    "pyg/edges": lambda order: Pyg(order, edges=True),
    "distgnn": Ours,
    "distgnn/bfloat16": lambda order: Ours(order, "bfloat16"),
    "bound": bound.Products,
    "bound/bfloat16": lambda order: bound.Products(order, torch.bfloat16),
}


def peak_bytes() -> int:
    """Peak resident memory of this program alone (`ru_maxrss` would count what it was started from)."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    if found is None:
        raise RunError("/proc/self/status names no peak of resident memory")
    return int(found[1]) * 1024


def main() -> None:
    """Obey the commands on standard input."""
    order = json.loads(sys.argv[1])
    answers, sys.stdout = sys.stdout, sys.stderr
    contestant = CONTESTANTS[order["name"]](order)

    def answer(**values: Any) -> None:
        print(json.dumps(values), file=answers, flush=True)

    answer(**{CHECKED_LOSS: contestant.start_loss()})
    for line in sys.stdin:
        command, _, number = line.strip().partition(" ")
        if command != "train":
            break
        seconds, losses = [], []
        for _ in range(int(number)):
            started = time.perf_counter()
            losses.append(contestant.train_epoch())
            seconds.append(time.perf_counter() - started)
        answer(seconds=seconds, losses=losses)
    more = contestant.facts() if hasattr(contestant, "facts") else {}
    answer(peak_rss_bytes=peak_bytes(), **more)


if __name__ == "__main__":
    main()
