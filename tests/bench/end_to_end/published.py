"""Published accuracies: our run, plain PyG's with the same setting and split, and `--recipe tuned` without a hint.

    python tests/bench/end_to_end/published.py WORK --out docs/benchmarks/accuracy.json  # all: a day
    python tests/bench/end_to_end/published.py WORK amazon-photo --sides ours,pyg --seeds 0,1,2 --threads 1
    python tests/bench/end_to_end/published.py WORK coauthor-cs --sides ours,pyg --epochs 5    # seconds of an epoch

Settings: distgnn/extras/tuned/settings.py. Every epoch is evaluated; the one with the best validation counts. A result
is kept in the JSON by row, side, epochs and seed: seconds of steps and evaluations, without loading and without the
first epoch; `reached`: each 0.1 % of validation up to the best, and the epoch that was the first to have it. What was
stopped goes on from its newest checkpoint when the same command starts again.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from program import DATA_ROOT, distgnn, machine, partition, words_of

from distgnn.config import Settings
from distgnn.datasets import load_graph
from distgnn.extras.tuned.settings import FEW_LABELS, MANY_LABELS
from distgnn.train.export.plain_model import GraphSizes
from distgnn.train.export.pyg import PyGModel

LOOPS, ROW = ("--direction", "both", "--self-loops", "add"), ("--normalize-feats", "row")
FAST_EPOCHS = 100
STEPS = 20  # of 0.1 %, below the best


class OnSparse(PyGModel):
    """PyG's layers on a sparse tensor, whose values are the normaliser where a layer has one."""

    def convolve(self, conv, rows, arcs, _last, initial=None):
        return conv(rows, *([] if self.config.name != "gcn2" else [initial]), arcs.edge_index)


class Row(NamedTuple):
    """Args: setting: its name in the table; cut: words of `partition`; published: test, percent, mean and deviation."""

    graph: str
    setting: str
    epochs: int
    published: str
    cut: tuple[str, ...] = (*LOOPS, *ROW)
    metric: str = "accuracy"


ROWS = {
    "amazon-photo": Row("amazon-photo", "amazon-photo, sage", 1000, "96.78 ± 0.23"),
    "amazon-computers-gat": Row("amazon-computers", "amazon-computers, gat", 1000, "94.09 ± 0.37"),
    "amazon-computers-gcn": Row("amazon-computers", "amazon-computers, gcn", 1000, "93.99 ± 0.12"),
    "coauthor-cs": Row("coauthor-cs", "coauthor-cs, sage", 1500, "96.38 ± 0.11"),
    "tolokers": Row("tolokers", "tolokers, gat", 1000, "83.78 ± 0.43", ("--direction", "both"), "rocauc"),
    "cora": Row("cora", "cora, gcn2", 1500, "85.5"),
    "citeseer": Row("citeseer", "citeseer, gcn", 500, ""),  # kept aside: recipe tuned is checked on it
}


def source_of(row: Row, work: Path) -> Path:
    """The graph with the published split."""
    source, place = Path(DATA_ROOT, row.graph), work / "graphs" / row.graph
    if not (source / "published").is_dir():
        return source
    place.mkdir(parents=True, exist_ok=True)
    for file in (*source.glob("*.*"), *(source / "published").iterdir()):
        (place / file.name).write_bytes(file.read_bytes())
    return place


def run_of(row: Row, args: argparse.Namespace, side: str, seed: int) -> Path:
    return args.work / "runs" / f"{row.setting.replace(', ', '-')}-{side}-{args.epochs or 'all'}-{seed}"


def trained(row: Row, args: argparse.Namespace, options: dict, seed: int, side: str = "ours") -> dict:
    """Test metric and seconds of one seed.

    Args: side: "fast" has recipe fast's optimiser and rates, and the layers of the setting; "tuned" what recipe tuned
        chooses, its lines beside it, and the seconds of the chosen run.
    """
    parts, run = args.work / "parts" / row.graph, run_of(row, args, side, seed)
    partition(source_of(row, args.work), 1, parts, *row.cut)
    left_out = {"ours": (), "fast": ("lr", "weight_decay"), "tuned": options}[side]
    words = words_of({name: value for name, value in options.items() if name not in left_out})
    epochs = args.epochs or {"ours": row.epochs, "fast": FAST_EPOCHS}.get(side)
    words += ["--epochs", epochs] if epochs else []
    words += ["--recipe", side] if side != "ours" else []
    words += ["--patience", 0] if side != "tuned" else []
    words += ["--metric", row.metric, "--eval-every", 1, "--checkpoint-every", 100, "--log", ""]
    done = distgnn("train", parts, "--run-dir", run, "--resume", "--seed", seed, "--threads", args.threads, *words)
    summary = json.loads((run / "summary.json").read_text())
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    each = [line["seconds"] + line["evaluation_seconds"] for line in lines]
    found = {"seed": seed, "test": summary["test_metric"], "valid": summary["valid_metric"]}
    found |= {"seconds": statistics.fmean(each[1:]) * len(each), "epoch_seconds": statistics.median(each[1:])}
    found["reached"] = reached([line["valid_metric"] for line in lines])
    spoken = [line for line in done.stderr.splitlines() if "recipe tuned" in line]
    return found | {"lines": spoken} if spoken else found


def plain_pyg(row: Row, args: argparse.Namespace, options: dict, seed: int, csr: bool = False) -> dict:
    """As `trained`, of PyG's layers in one process, with torch's Adam; PyG's own first weights.

    Args: csr: arcs as a sparse tensor (not of gat), in place of edge_index.
    """
    epochs = args.epochs or row.epochs
    kept = run_of(row, args, "pyg-csr" if csr else "pyg", seed).with_suffix(".pt")
    kept.parent.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(args.threads)
    data = load_graph(str(source_of(row, args.work)))
    cut = {"direction": "both", "self_loops": "add" if LOOPS[-1] in row.cut else "keep"}
    cut |= {"normalize_feats": "row"} if set(ROW) <= set(row.cut) else {}
    edges = data.edge_list(cut["direction"], cut["self_loops"])
    graph = data.to_pyg(edges)
    x = graph.x.to_dense() if graph.x.is_sparse or graph.x.layout != torch.strided else graph.x
    if "normalize_feats" in cut:
        x = x / x.sum(1, keepdim=True).clamp(min=1)
    arcs, config = graph.edge_index, Settings().with_options(options)
    if csr:
        values = torch.ones(arcs.shape[1])
        if config.model.name in ("gcn", "gcn2", "appnp"):
            root = torch.bincount(arcs[1], minlength=len(x)).clamp(min=1).rsqrt()
            values = root[arcs[0]] * root[arcs[1]]
        arcs = torch.sparse_coo_tensor(arcs.flip(0), values, (len(x), len(x))).to_sparse_csr()
    masks = {"train": graph.train_mask, "valid": graph.val_mask, "test": graph.test_mask}
    torch.manual_seed(seed)
    model = (OnSparse if csr else PyGModel)(config.model, GraphSizes(x.shape[1], data.num_classes))
    groups: dict[bool, list] = {True: [], False: []}
    for name, parameter in model.named_parameters():
        groups[name.startswith("convs.")].append(parameter)
    decays = {False: config.train.weight_decay, True: config.train.conv_weight_decay}
    decays[True] = decays[False] if decays[True] is None else decays[True]
    made = [{"params": groups[is_conv], "weight_decay": decay} for is_conv, decay in decays.items()]
    optimizer, best, seconds, valid = torch.optim.Adam(made, config.train.lr), {"valid": -1.0}, [], []
    if kept.exists():
        weights, state, best, seconds, valid, draws = torch.load(kept)
        model.load_state_dict(weights)
        optimizer.load_state_dict(state)
        torch.set_rng_state(draws)
    while len(seconds) < epochs:
        started = time.perf_counter()
        model.train()
        optimizer.zero_grad()
        logits = model(x, arcs)
        torch.nn.functional.cross_entropy(logits[masks["train"]], graph.y[masks["train"]]).backward()
        optimizer.step()
        model.eval()
        with torch.no_grad():
            logits = model(x, arcs)
        scores = {name: measured(row.metric, logits[mask], graph.y[mask]) for name, mask in masks.items()}
        best = scores if scores["valid"] > best["valid"] else best
        valid.append(scores["valid"])
        seconds.append(time.perf_counter() - started)
        if len(seconds) % 50 == 0:
            draws = torch.get_rng_state()
            torch.save((model.state_dict(), optimizer.state_dict(), best, seconds, valid, draws), kept)
    found = {"seed": seed, "test": best["test"], "valid": best["valid"], "reached": reached(valid)}
    return found | {"seconds": statistics.fmean(seconds[1:]) * epochs, "epoch_seconds": statistics.median(seconds[1:])}


def reached(valid: list[float]) -> dict[str, int]:
    """The first epoch, from 1, with at least so many percent, for the last steps up to the best."""
    best = int(1000 * max(valid) + 1e-6)
    levels = range(best - STEPS, best + 1)
    return {f"{one / 10:.1f}": next(n for n, v in enumerate(valid, 1) if 1000 * v + 1e-6 >= one) for one in levels}


def measured(metric: str, logits: torch.Tensor, labels: torch.Tensor) -> float:
    if metric == "accuracy":
        return (logits.argmax(1) == labels).float().mean().item()
    score, truth = (logits[:, 1] - logits[:, 0]).double().numpy(), labels.numpy()
    order, positive = np.argsort(score, kind="stable"), int(truth.sum())
    ranks = np.empty(len(score))
    ranks[order] = np.arange(1, len(score) + 1)
    return float((ranks[truth == 1].sum() - positive * (positive + 1) / 2) / (positive * (len(score) - positive)))


SIDES = {side: partial(trained, side=side) for side in ("ours", "tuned", "fast")}
SIDES |= {"pyg": plain_pyg, "pyg-csr": partial(plain_pyg, csr=True)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("work", type=Path)
    parser.add_argument("rows", nargs="*", default=list(ROWS))
    parser.add_argument("--sides", default="ours,pyg,tuned")
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--epochs", type=int, help="fewer than published")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--note", default="", help="kept beside the result, such as busy")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--alone", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    for name in args.rows:
        row = ROWS[name]
        for seed in map(int, args.seeds.split(",")):
            for side in args.sides.split(","):
                if side.startswith("pyg") and not args.alone:  # a process of its own, without our threads
                    alone = [sys.executable, __file__, str(args.work), name, "--alone", "--sides", side]
                    alone += ["--seeds", str(seed), "--threads", str(args.threads)]
                    alone += ["--epochs", str(args.epochs)] if args.epochs else []
                    run = json.loads(subprocess.run(alone, stdout=subprocess.PIPE, check=True).stdout)
                else:
                    run = SIDES[side](row, args, (MANY_LABELS | FEW_LABELS)[row.setting], seed)
                if args.alone:
                    print(json.dumps(run))
                    continue
                epochs = args.epochs or {"tuned": 1000, "fast": FAST_EPOCHS}.get(side, row.epochs)
                result = {"row": name, "side": side, "epochs": epochs, "threads": args.threads, "note": args.note}
                print(json.dumps(result | {"runs": [run]}), flush=True)
                if args.out:
                    keep(args.out, result | {"runs": [run], "machine": machine()})


def keep(out: Path, result: dict) -> None:
    """Put a run into the JSON, in place of the same seed of the same row, side and epochs."""
    kept = json.loads(out.read_text()) if out.exists() else {}
    same, others = [], []
    for one in kept.get("published", []):
        alike = all(one[key] == result[key] for key in ("row", "side", "epochs"))
        (same if alike else others).append(one)
    seeds = [run["seed"] for run in result["runs"]]
    earlier = [run for one in same for run in one["runs"] if run["seed"] not in seeds]
    result["runs"] = sorted([*earlier, *result["runs"]], key=lambda run: run["seed"])
    kept["published"] = [*others, result]
    out.write_text(json.dumps(kept, indent=1) + "\n")


if __name__ == "__main__":
    main()
