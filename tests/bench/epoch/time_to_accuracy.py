"""Seconds of training until 99 % of the best validation accuracy: full batch (ours) and neighbour sampling (DGL).

    distgnn partition facebook-pages --parts 1 --out parts/facebook-pages
    python tests/bench/epoch/time_to_accuracy.py parts/facebook-pages --limits 15,12,60 --seeds 0,1,2 --out f.json

Sampling runs with the settings of DGL's own example (node classification, examples/pytorch/graphsage): three layers of
256, fan-out 10, 10, 10, batches of 1,024, Adam 0.001, weight decay 0.0005, dropout 0.5. Full batch: the same model
and dropout, with layer norm and Adam 0.01, our defaults. Evaluation (whole graph, after every epoch of sampling and
every second of full batch) is not counted. The best accuracy is the best of all curves, seeds included. One after the
other in one process; limits of the contestants, in seconds of training, in their order. Not run by pytest.
"""

import argparse
import importlib
import json
import time
from itertools import pairwise
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional

from distgnn.config import ModelConfig, TrainConfig, num_threads
from distgnn.graph.loader import load
from distgnn.interop.dgl.import_dgl import import_dgl
from distgnn.nn import build_model
from distgnn.partition import load_part
from distgnn.train import Trainer

SHARE = 0.99
FULL_BATCH_EVAL_EVERY = 2


def full_batch(parts: str, dtype: str, seed: int, limit: float) -> list[dict]:
    """The curve of our training: {seconds, epoch, valid, test} after each evaluation."""
    config = ModelConfig()
    graph = load(parts, dtype=dtype, seed=seed, sparse_feats=config.takes_sparse_feats)
    torch.manual_seed(seed)
    network = build_model(config, graph.num_feats, graph.num_classes)
    trainer = Trainer(network, graph, TrainConfig(seed=seed))
    curve, seconds, epoch = [], 0.0, 0
    while seconds < limit:
        for _ in range(FULL_BATCH_EVAL_EVERY):
            seconds += trainer.train_epoch(epoch)["seconds"]
            epoch += 1
        found = trainer.evaluate()
        curve.append(
            {"seconds": seconds, "epoch": epoch, "valid": found["valid_accuracy"], "test": found["test_accuracy"]}
        )
    return curve


class SAGE(nn.Module):
    """The model of DGL's example."""

    def __init__(self, dgl, in_feats: int, hidden: int, classes: int):
        super().__init__()
        sizes = [in_feats, hidden, hidden, classes]
        self.layers = nn.ModuleList(dgl.nn.SAGEConv(a, b, "mean") for a, b in pairwise(sizes))
        self.dropout = nn.Dropout(0.5)

    def forward(self, blocks, rows):
        for number, layer in enumerate(self.layers):
            rows = layer(blocks[number], rows)
            if number < len(self.layers) - 1:
                rows = self.dropout(functional.relu(rows))
        return rows


def sampling(parts: str, seed: int, limit: float) -> list[dict]:
    """The curve of DGL's neighbour sampling."""
    dgl = import_dgl()
    for name in ("dgl.nn", "dgl.dataloading"):
        importlib.import_module(name)
    torch.manual_seed(seed)
    dgl.seed(seed)
    local = load_part(parts, 0)
    csr = local.blocks["owned_owned"]
    targets = torch.repeat_interleave(torch.arange(local.num_owned), torch.tensor(csr.indptr).diff())
    graph = dgl.graph((torch.tensor(csr.indices).long(), targets), num_nodes=local.num_owned)
    dense = local.feats.toarray() if hasattr(local.feats, "toarray") else local.feats
    feats, labels = torch.tensor(dense), torch.tensor(local.labels)
    masks = {name: torch.tensor(getattr(local, f"{name}_mask")) & (labels >= 0) for name in ("train", "valid", "test")}
    sampler = dgl.dataloading.NeighborSampler([10, 10, 10])
    batches = dgl.dataloading.DataLoader(
        graph, masks["train"].nonzero()[:, 0], sampler, batch_size=1024, shuffle=True, drop_last=False, num_workers=0
    )
    model = SAGE(dgl, feats.shape[1], 256, local.graph["num_classes"])
    optimizer = torch.optim.Adam(model.parameters(), lr=0.001, weight_decay=5e-4)
    curve, seconds, epoch = [], 0.0, 0
    while seconds < limit:
        model.train()
        started = time.perf_counter()
        for inputs, outputs, blocks in batches:
            loss = functional.cross_entropy(model(blocks, feats[inputs]), labels[outputs])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        seconds += time.perf_counter() - started
        epoch += 1
        model.eval()
        with torch.no_grad():
            right = model([graph] * 3, feats).argmax(1) == labels
        found = {name: right[masks[name]].float().mean().item() for name in ("valid", "test")}
        curve.append({"seconds": seconds, "epoch": epoch} | found)
    return curve


def report(curves: list[dict]) -> list[dict]:
    """Seconds and epochs to 99 % of the best validation accuracy of all curves, per contestant and seed."""
    best = max(point["valid"] for one in curves for point in one["curve"])
    rows = []
    for one in curves:
        there = [point for point in one["curve"] if point["valid"] >= SHARE * best]
        first = there[0] if there else {"seconds": None, "epoch": None}
        top = max(one["curve"], key=lambda point: point["valid"])
        rows.append(
            {
                "contestant": one["contestant"],
                "seed": one["seed"],
                "seconds": first["seconds"],
                "epochs": first["epoch"],
            }
            | {"best_valid": top["valid"], "test_at_best": top["test"], "target": SHARE * best}
        )
    return rows


def main() -> None:
    """Run the contestants in turn, seed by seed, and write curves as they come."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts")
    parser.add_argument("--limits", default="60", help="seconds of training: of each contestant, or of all")
    parser.add_argument("--seeds", default="0")
    parser.add_argument("--contestants", default="full,full/bfloat16,sampling")
    parser.add_argument("--out", default="time_to_accuracy.json")
    options = parser.parse_args()
    torch.set_num_threads(num_threads())
    names, limits = options.contestants.split(","), [float(limit) for limit in options.limits.split(",")]
    limits = limits * len(names) if len(limits) == 1 else limits
    curves = []
    for seed in map(int, options.seeds.split(",")):
        for name, limit in zip(names, limits, strict=True):
            if name == "sampling":
                curve = sampling(options.parts, seed, limit)
            else:
                curve = full_batch(options.parts, "bfloat16" if "/" in name else "float32", seed, limit)
            curves.append({"contestant": name, "seed": seed, "curve": curve})
            rows = report(curves)
            Path(options.out).write_text(json.dumps({"rows": rows, "curves": curves}))
            print(json.dumps(rows[-1]), flush=True)
    for row in report(curves):
        print(json.dumps(row))


if __name__ == "__main__":
    main()
