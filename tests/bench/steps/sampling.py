"""DGL's neighbour sampling as a contestant: `python tests/bench/steps/sampling.py PARTS --out FOLDER [options]`.

The settings are those of DGL's own example (node classification, examples/pytorch/graphsage): three SAGE layers of 256,
fan-out 10, 10, 10, batches of 1,024, Adam 0.001, weight decay 0.0005, dropout 0.5. An epoch is a pass over the training
vertices. Evaluation is on the whole graph. Appends a line per epoch to FOLDER/metrics.jsonl.
"""

import argparse
import importlib
import json
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from distgnn.errors import InputError
from distgnn.partition import load_part, read_manifest
from distgnn.system.other_libraries import import_dgl

SPLITS = ("train", "valid", "test")


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> Any:
        raise InputError(f"dgl-sampling: {message}")


def parse_options(words: list[str], whole: bool = False) -> argparse.Namespace:
    """Options of the contestant; `whole`: those of the process too. Raises: InputError for an unknown one."""
    parser = _Parser(prog="dgl-sampling", add_help=False)
    parser.add_argument("--lr", type=float, default=0.001)
    parser.add_argument("--weight-decay", type=float, default=5e-4)
    parser.add_argument("--fanout", default="10,10,10", help="neighbours of each layer, the input's first")
    parser.add_argument("--batch-size", type=int, default=1024)
    parser.add_argument("--hidden-feats", type=int, default=256)
    parser.add_argument("--dropout", type=float, default=0.5)
    parser.add_argument("--epochs", type=int, default=1000)
    if whole:
        parser.add_argument("parts")
        parser.add_argument("--out", required=True)
        parser.add_argument("--seed", type=int, default=0)
        parser.add_argument("--threads", type=int, default=None)
    return parser.parse_args(words)


class SAGE(nn.Module):
    """The model of DGL's example."""

    def __init__(self, dgl: Any, sizes: list[int], dropout: float):
        super().__init__()
        self.layers = nn.ModuleList(dgl.nn.SAGEConv(a, b, "mean") for a, b in pairwise(sizes))
        self.dropout = nn.Dropout(dropout)

    def forward(self, blocks: Any, rows: torch.Tensor) -> torch.Tensor:
        for number, layer in enumerate(self.layers):
            rows = layer(blocks[number], rows)
            if number < len(self.layers) - 1:
                rows = self.dropout(functional.relu(rows))
        return rows


class Sampling:
    """The example's training loop over one part."""

    def __init__(self, options: argparse.Namespace):
        if read_manifest(options.parts)["num_parts"] != 1:
            raise InputError(f"dgl-sampling is one process: give a folder made with --parts 1, not {options.parts}")
        dgl = import_dgl()
        for name in ("dgl.nn", "dgl.dataloading"):
            importlib.import_module(name)
        torch.manual_seed(options.seed)
        dgl.seed(options.seed)
        local = load_part(options.parts, 0)
        csr = local.blocks["owned_owned"]
        targets = torch.repeat_interleave(torch.arange(local.num_owned), torch.tensor(csr.indptr).diff())
        self.graph = dgl.graph((torch.tensor(csr.indices).long(), targets), num_nodes=local.num_owned)
        feats: Any = local.feats
        self.feats = torch.tensor(feats.toarray() if hasattr(feats, "toarray") else feats)
        self.labels = torch.tensor(local.labels)
        self.masks = {name: torch.tensor(getattr(local, f"{name}_mask")) & (self.labels >= 0) for name in SPLITS}
        fanout = [int(count) for count in options.fanout.split(",")]
        sampler = dgl.dataloading.NeighborSampler(fanout)
        sizes = [self.feats.shape[1], *[options.hidden_feats] * (len(fanout) - 1), local.graph["num_classes"]]
        chosen = self.masks["train"].nonzero()[:, 0]
        loading = {"batch_size": options.batch_size, "shuffle": True, "drop_last": False, "num_workers": 0}
        self.batches = dgl.dataloading.DataLoader(self.graph, chosen, sampler, **loading)
        self.model = SAGE(dgl, sizes, options.dropout)
        decay = {"lr": options.lr, "weight_decay": options.weight_decay}
        self.optimizer = torch.optim.Adam(self.model.parameters(), **decay)

    def epoch(self) -> dict[str, float]:
        """One pass over the training vertices: {seconds, loss}."""
        self.model.train()
        started, losses = time.perf_counter(), []
        for inputs, outputs, blocks in self.batches:
            loss = functional.cross_entropy(self.model(blocks, self.feats[inputs]), self.labels[outputs])
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            losses.append(loss.item())
        return {"loss": sum(losses) / max(len(losses), 1), "seconds": time.perf_counter() - started}

    def evaluate(self) -> dict[str, float]:
        """Accuracy of each split on the whole graph, and the seconds it took."""
        started = time.perf_counter()
        self.model.eval()
        with torch.no_grad():
            right = self.model([self.graph] * len(self.model.layers), self.feats).argmax(1) == self.labels
        found = {f"{name}_metric": right[self.masks[name]].float().mean().item() for name in SPLITS}
        return found | {"evaluation_seconds": time.perf_counter() - started}


def main(words: list[str] | None = None) -> None:
    """Train until the epochs are done, or a signal comes."""
    import sys

    options = parse_options(sys.argv[1:] if words is None else words, whole=True)
    if options.threads:
        torch.set_num_threads(options.threads)
    sampling, folder = Sampling(options), Path(options.out)
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "metrics.jsonl", "w", encoding="utf-8") as metrics:
        for epoch in range(options.epochs):
            record = {"epoch": epoch} | sampling.epoch() | sampling.evaluate()
            metrics.write(json.dumps(record) + "\n")
            metrics.flush()


if __name__ == "__main__":
    main()
