"""Peak memory of `distgnn train` over models, norms, dtypes, algorithms and ranks, beside the estimate.

    python tests/bench/memory/peaks.py WORK                  # all cases on 75,000 vertices; about an hour
    python tests/bench/memory/peaks.py WORK --nodes 300000 --only "sage.* --norm" --ranks 1
    python tests/bench/memory/peaks.py WORK --graph rmat     # another graph: of GRAPHS, or any source
    python tests/bench/memory/peaks.py WORK --graph ogbn-arxiv --ranks 1 4 --only "^sage$"    # of one rank's peak

Each case trains four epochs with two evaluations. A row is of the rank with the highest peak:

    peak       largest resident set (VmHWM), MB, with pages of mapped files and of libraries
    anon       largest part of it that is no file, MB, sampled every 5 ms
    estimate   of that rank by `distgnn train`, and as a multiple of the peak
    of cd-0    peak as a multiple of that of the first case of its ranks
    seconds    of the median epoch; with --report, which looks at memory all the time, longer
    messages   with --report: messages and held rows of the rank with most, MB
    rest       with --report: percent of the peak that the ledger does not account for, on the rank with most

Rows are kept in WORK/peaks.jsonl by graph, commit and case: a call measures what is missing. `--again` measures all.
"""

import argparse
import json
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np

from distgnn.datasets import load_graph
from distgnn.partition import partition_graph, read_manifest
from distgnn.train.run.estimate import estimate_bytes
from distgnn.train.run.run_folder import read_config

GRAPHS = {
    "communities": "communities:nodes={nodes},avg_degree=40,communities=300,mixing=0.3,feats=100,classes=47",
    "rmat": "rmat:scale=16,edge_factor=16,feats=128,classes=32",
    "sparse": "communities:nodes={nodes},avg_degree=6,communities=100,mixing=0.1,feats=300,classes=10",
}
SIZES = "--num-layers 3 --hidden-feats 256"
EVERYWHERE = (
    "sage",
    "sage --norm none",
    "sage --norm batch",
    "sage --norm graph",
    "sage --norm pair",
    "sage --dtype bfloat16",
    "sage --remat",
    "gcn",
    "gcn --norm batch",
    "gat",
    "gat --norm none",
    "gat --remat",
    "gin",
    "gin --norm batch",
    "gin --remat",
    "gatv2",
    "gatv2 --norm none",
    "gcn2",
    "gcn2 --norm none",
    "appnp",
    "gine",
    "edgegat",
    "rgcn",
    "sage --dtype float64",
    "sage --block residual",
    "gat --block residual",
    "gat --block preact",
    "sage --block preact",
    "sage --set head=cat",
    "sage --offload {folder}",
)
ON_RANKS = (
    "sage --wire bfloat16",
    "sage --wire int8",
    "sage --algorithm cd-5",
    "sage --algorithm cd-5 --wire int8",
    "sage --algorithm cd-5 --wire bfloat16",
    "sage --copy-updates 0c",
    "gcn --algorithm cd-5",
    "gat --algorithm cd-5",
)
OF_ARCS = re.compile("gine|edgegat|rgcn")  # models of graphs whose arcs have features and types
EDGE_FEATS, EDGE_TYPES = 8, 4
INTERVAL = 0.005
COLUMNS = "| ranks | options | peak | anon | estimate | / peak | / first | seconds | messages | rest |"


class Watch(threading.Thread):
    """The peaks of all processes that descend from this one, until `stop` is set."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.stop, self.peaks = threading.Event(), {}

    def run(self) -> None:
        known, asked = [], 0.0
        while not self.stop.is_set():
            if time.monotonic() - asked > 20 * INTERVAL:
                known, asked = descendants(), time.monotonic()
            for process in known:
                self._look_at(process)
            time.sleep(INTERVAL)

    def _look_at(self, process: int) -> None:
        try:
            text = Path(f"/proc/{process}/status").read_text()
        except OSError:
            return
        found = dict(re.findall(r"^(VmHWM|RssAnon):\s+(\d+) kB$", text, re.MULTILINE))
        if len(found) == 2:
            now = [1024 * int(found[name]) for name in ("VmHWM", "RssAnon")]
            self.peaks[process] = [max(pair) for pair in zip(now, self.peaks.get(process, now), strict=True)]


def descendants() -> list[int]:
    """Processes that descend from this one."""

    def children(process: int) -> list[int]:
        try:
            return list(map(int, Path(f"/proc/{process}/task/{process}/children").read_text().split()))
        except OSError:
            return []

    found = children(threading.main_thread().native_id or 0)
    for process in found:
        found += children(process)
    return found


def measure(parts: Path, ranks: int, run: Path, words: str, report: bool) -> dict:
    """Train; peaks of the rank with the highest, seconds of an epoch, the settings, and what `--memory-report` says."""
    options = words.format(folder=run.parent).split() + SIZES.split()
    command = [sys.executable, "-m", "distgnn.cli", "train", str(parts), "--model", *options]
    command += ["--epochs", "4", "--eval-every", "2", "--run-dir", str(run), "--overwrite", "--quiet"]
    command += ["--memory-report"] if report else []
    watch = Watch()
    watch.start()
    subprocess.run([*command, "--memory", "1TB"], check=True, timeout=3600)
    watch.stop.set()
    watch.join()
    summary = json.loads((run / "summary.json").read_text())
    of_ranks = sorted(watch.peaks.values())[-ranks:]
    return {
        "peaks": [peak for peak, _ in of_ranks],
        "anon": max(anon for _, anon in of_ranks),
        "seconds": summary["epoch_seconds_median"],
        "memory": summary.get("memory"),
        "settings": read_config(str(run)),
    }


def cut(source: str, ranks: int, work: Path, words: str) -> Path:
    """The partition folder of a case, made if it is not there."""
    arcs = OF_ARCS.match(words) is not None
    parts = work / f"{re.sub('[^a-z0-9]+', '-', source)}-{ranks}{'-arcs' if arcs else ''}"
    if not parts.exists():
        data = load_graph(source)
        if arcs:
            rng = np.random.default_rng(0)
            data.edge_feats = rng.normal(size=(data.num_edges, EDGE_FEATS)).astype(np.float32)
            data.edge_types = rng.integers(0, EDGE_TYPES, data.num_edges)
        partition_graph(data, ranks, parts, effort="fast")
    return parts


def commit() -> str:
    """What was measured."""
    command = ["git", "describe", "--always", "--dirty"]
    return subprocess.run(command, capture_output=True, text=True, check=True, cwd=Path(__file__).parent).stdout.strip()


def main() -> None:
    """Measure what is missing, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("work", type=Path)
    parser.add_argument("--graph", default="communities", help=f"{', '.join(GRAPHS)}, or a source")
    parser.add_argument("--nodes", type=int, default=75_000)
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--only", default="", help="cases whose words match this pattern")
    parser.add_argument("--commit", default=commit(), help="show what was measured there")
    parser.add_argument("--report", action="store_true", help="with --memory-report")
    parser.add_argument("--again", action="store_true")
    args = parser.parse_args()
    args.work.mkdir(parents=True, exist_ok=True)
    log, source = args.work / "peaks.jsonl", GRAPHS.get(args.graph, args.graph).format(nodes=args.nodes)
    rows = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
    ratios, peaks = [], {}
    print(f"{source}\n{COLUMNS}\n{re.sub('[^|]+', '---', COLUMNS)}", flush=True)
    for ranks in args.ranks:
        first = None
        for words in [*EVERYWHERE, *(ON_RANKS if ranks > 1 else ())]:
            if not re.search(args.only, words):
                continue
            parts = cut(source, ranks, args.work, words)
            key = {"graph": source, "ranks": ranks, "words": words, "commit": args.commit}
            row = next((row for row in reversed(rows) if key.items() <= row.items()), None)
            if row is None or args.again:
                row = key | measure(parts, ranks, args.work / "run", words, args.report)
                with open(log, "a", encoding="utf-8") as stream:
                    stream.write(json.dumps(row) + "\n")
            peak, manifest = max(row["peaks"]), read_manifest(parts)
            estimated = max(
                estimate_bytes(manifest, part_id, row["settings"]) for part_id in range(manifest["num_parts"])
            )
            first, memory = first or peak, row.get("memory")
            messages = rest = ""
            if memory:
                blocks = memory["blocks"]
                messages = f"{max(map(sum, zip(blocks['messages'], blocks['held rows'], strict=True))) / 1e6:.0f}"
                rests = zip(blocks["not accounted for"], memory["peak"], strict=True)
                rest = f"{max(100 * one / of for one, of in rests):.1f}"
            ratios.append(estimated / peak)
            peaks.setdefault(words, {})[ranks] = peak
            print(
                f"| {ranks} | {words} | {peak / 1e6:.0f} | {row['anon'] / 1e6:.0f} | {estimated / 1e6:.0f} | "
                f"{ratios[-1]:.2f} | {peak / first:.2f} | {row['seconds']:.3f} | {messages} | {rest} |",
                flush=True,
            )
    print(f"{len(ratios)} runs: estimate / peak from {min(ratios):.2f} to {max(ratios):.2f}")
    for words, of_ranks in peaks.items():
        fewest, *more = of_ranks
        for ranks in more:
            print(f"{words}: {ranks} ranks: {100 * of_ranks[ranks] / of_ranks[fewest]:.1f} % of the peak of {fewest}")


if __name__ == "__main__":
    main()
