"""Published accuracies: our run, plain PyG's with the same setting and split, and `--recipe tuned` without a hint.

    python tests/bench/end_to_end/published.py WORK --out docs/benchmarks/accuracy.json  # all: a day
    python tests/bench/end_to_end/published.py WORK amazon-photo --sides ours,pyg --seeds 3 --threads 1
    python tests/bench/end_to_end/published.py WORK coauthor-cs --sides pyg --epochs 5           # seconds of an epoch

Settings: distgnn/extras/tuned/settings.py. Every epoch is evaluated; the one with the best validation counts. A result
is kept in the JSON by row, side and epochs; its seconds are those of steps and evaluations, without loading.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from program import DATA_ROOT, distgnn, machine, partition, train_seeds

from distgnn.config import Settings
from distgnn.datasets import load_graph
from distgnn.extras.tuned.settings import FEW_LABELS, MANY_LABELS
from distgnn.train.export.plain_stack import GraphSizes
from distgnn.train.export.pyg import PyGModel

LOOPS, ROW = ("--direction", "both", "--self-loops", "add"), ("--normalize-feats", "row")


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
}


def words_of(options: dict) -> list[str]:
    return [word for name, value in options.items() for word in (f"--{name.replace('_', '-')}", str(value))]


def source_of(row: Row, work: Path) -> Path:
    """The graph with the published split."""
    source, place = Path(DATA_ROOT, row.graph), work / "graphs" / row.graph
    if not (source / "published").is_dir():
        return source
    place.mkdir(parents=True, exist_ok=True)
    for file in (*source.glob("*.*"), *(source / "published").iterdir()):
        (place / file.name).write_bytes(file.read_bytes())
    return place


def ours(row: Row, args: argparse.Namespace, options: dict) -> list[dict]:
    """Test metric and seconds of each seed."""
    parts, run = args.work / "parts" / row.graph, args.work / "runs" / row.graph
    partition(source_of(row, args.work), 1, parts, *row.cut)
    words = [*words_of(options), "--metric", row.metric, "--epochs", args.epochs or row.epochs, "--eval-every", 1]
    runs = train_seeds(parts, run, range(args.seeds), *words, threads=args.threads)
    folders = [run / f"seed-{seed}" for seed in range(args.seeds)] if args.seeds > 1 else [run]
    found = []
    for summary, folder in zip(runs, folders, strict=True):
        lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
        seconds = (
            sum(line["seconds"] + line["evaluation_seconds"] for line in lines[1:]) * len(lines) / (len(lines) - 1)
        )
        found.append({"test": summary["test_metric"], "valid": summary["valid_metric"], "seconds": seconds})
    return found


def tuned(row: Row, args: argparse.Namespace, _options: dict) -> list[dict]:
    """As `ours`, by recipe tuned; its line beside it. Seconds: of the whole command, race included."""
    parts, run = args.work / "parts" / row.graph, args.work / "runs" / f"{row.graph}-tuned"
    partition(source_of(row, args.work), 1, parts, *row.cut)
    words = ["--recipe", "tuned", "--metric", row.metric, "--run-dir", run, "--overwrite", "--threads", args.threads]
    started = time.perf_counter()
    done = distgnn("train", parts, *words, "--log", "", *(["--epochs", args.epochs] if args.epochs else []))
    summary = json.loads((run / "summary.json").read_text())
    found = {"test": summary["test_metric"], "valid": summary["valid_metric"], "seconds": time.perf_counter() - started}
    return [found | {"lines": [line for line in done.stderr.splitlines() if "recipe tuned" in line]}]


def plain_pyg(row: Row, args: argparse.Namespace, options: dict) -> list[dict]:
    """As `ours`, of PyG's layers in one process, with torch's Adam; PyG's own first weights."""
    torch.set_num_threads(args.threads)
    data = load_graph(str(source_of(row, args.work)))
    cut = {"direction": "both", "self_loops": "add" if LOOPS[-1] in row.cut else "keep"}
    cut |= {"normalize_feats": "row"} if set(ROW) <= set(row.cut) else {}
    edges = data.edge_list(cut["direction"], cut["self_loops"])
    graph = data.to_pyg(edges)
    x = graph.x.to_dense() if graph.x.is_sparse or graph.x.layout != torch.strided else graph.x
    if "normalize_feats" in cut:
        x = x / x.sum(1, keepdim=True).clamp(min=1)
    masks = {"train": graph.train_mask, "valid": graph.val_mask, "test": graph.test_mask}
    config, found = Settings().with_options(options), []
    for seed in range(args.seeds):
        torch.manual_seed(seed)
        model = PyGModel(config.model, GraphSizes(x.shape[1], data.num_classes))
        rates = {"lr": config.train.lr, "weight_decay": config.train.weight_decay}
        optimizer, best, seconds = torch.optim.Adam(model.parameters(), **rates), {"valid": -1.0}, []
        for _ in range(args.epochs or row.epochs):
            started = time.perf_counter()
            model.train()
            optimizer.zero_grad()
            logits = model(x, graph.edge_index)
            torch.nn.functional.cross_entropy(logits[masks["train"]], graph.y[masks["train"]]).backward()
            optimizer.step()
            model.eval()
            with torch.no_grad():
                logits = model(x, graph.edge_index)
            scores = {name: measured(row.metric, logits[mask], graph.y[mask]) for name, mask in masks.items()}
            best = scores if scores["valid"] > best["valid"] else best
            seconds.append(time.perf_counter() - started)
        total = statistics.fmean(seconds[1:] or seconds) * len(seconds)
        found.append({"test": best["test"], "valid": best["valid"], "seconds": total})
    return found


def measured(metric: str, logits: torch.Tensor, labels: torch.Tensor) -> float:
    if metric == "accuracy":
        return (logits.argmax(1) == labels).float().mean().item()
    score, truth = (logits[:, 1] - logits[:, 0]).double().numpy(), labels.numpy()
    order, positive = np.argsort(score, kind="stable"), int(truth.sum())
    ranks = np.empty(len(score))
    ranks[order] = np.arange(1, len(score) + 1)
    return float((ranks[truth == 1].sum() - positive * (positive + 1) / 2) / (positive * (len(score) - positive)))


SIDES = {"ours": ours, "pyg": plain_pyg, "tuned": tuned}


def main() -> None:
    """Measure, keep and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("work", type=Path)
    parser.add_argument("rows", nargs="*", default=list(ROWS))
    parser.add_argument("--sides", default="ours,pyg,tuned")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, help="fewer than published")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--note", default="", help="kept beside the result, such as busy")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--alone", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.alone:
        row = ROWS[args.alone]
        print(json.dumps(plain_pyg(row, args, (MANY_LABELS | FEW_LABELS)[row.setting])))
        return
    kept = json.loads(args.out.read_text()) if args.out and args.out.exists() else {}
    for name in args.rows:
        row = ROWS[name]
        for side in args.sides.split(","):
            if side == "pyg":  # a process of its own, without our threads
                alone = [sys.executable, __file__, str(args.work), "--alone", name, "--seeds", str(args.seeds)]
                alone += ["--threads", str(args.threads), *(["--epochs", str(args.epochs)] if args.epochs else [])]
                runs = json.loads(subprocess.run(alone, stdout=subprocess.PIPE, check=True).stdout)
            else:
                runs = SIDES[side](row, args, (MANY_LABELS | FEW_LABELS)[row.setting])
            epochs = args.epochs or (1000 if side == "tuned" else row.epochs)
            result = {"row": name, "side": side, "epochs": epochs, "threads": args.threads, "note": args.note}
            result |= {"runs": runs, "machine": machine()}
            print(json.dumps(result), flush=True)
            if args.out:
                same = ("row", "side", "epochs")
                others = [one for one in kept.get("published", []) if any(one[key] != result[key] for key in same)]
                kept["published"] = [*others, result]
                args.out.write_text(json.dumps(kept, indent=1) + "\n")


if __name__ == "__main__":
    main()
