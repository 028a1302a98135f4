"""`dg.fit` beside `distgnn partition` and `distgnn train`: seconds, memory, losses; from a folder and from arrays.

    python tests/bench/door/fit.py                                          # cora and 300,000 vertices, 1 and 2 ranks
    python tests/bench/door/fit.py "communities:nodes=2449029,…" --ranks 2 --epochs 1 --ways "fit, folder"
    python tests/bench/door/fit.py GRAPH --work FOLDER                      # what is there already is not made again

Each way is a process of its own, from its start to its end, after one of a small graph that loads programs and kernels.
A row: seconds, and the highest sum of memory of all its processes at one time (PSS: a shared page once, with mapped
files), looked at every 100 ms. `fit, folder` gives a folder's path; `fit, arrays` reads it, and gives a dict of arrays,
which it keeps; `again` has the cut in the cache. Losses must be those of `distgnn train`, to the bit.
"""

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "end_to_end"))
from program import DATA_ROOT, print_machine

from distgnn.datasets import load_graph

GRAPHS = (
    f"{DATA_ROOT}/cora",
    "communities:nodes=300000,avg_degree=40,communities=300,mixing=0.3,feats=100,classes=47",
)
WARM = "communities:nodes=2000,communities=47,feats=100,classes=47"
MODEL = {"num_layers": 3, "hidden_feats": 256, "norm": "layer", "lr": 0.01}
WAYS = ("fit, folder", "fit, folder, again", "fit, arrays", "fit, arrays, again")
INTERVAL = 0.1
SCRIPT = """
import json, sys
import distgnn as dg
kind, source, ranks, out, options = sys.argv[1:]
data = source
if kind == "arrays":
    graph = dg.load_graph(source)
    data = dict(edge_index=graph.edges, x=graph.feats, y=graph.labels, directed=graph.directed)
    data |= dict(train=graph.train, valid=graph.valid, test=graph.test)
    del graph
result = dg.fit(data, "sage", ranks=int(ranks), quiet=True, **json.loads(options))
result.save(out)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("graphs", nargs="*", default=GRAPHS)
    parser.add_argument("--ranks", default="1,2")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--ways", action="append", choices=WAYS)
    parser.add_argument("--work", type=Path)
    options = parser.parse_args()
    print_machine()
    with tempfile.TemporaryDirectory() as scratch:
        for number, name in enumerate(options.graphs):
            work = (options.work or Path(scratch)) / str(number)
            for ranks in map(int, options.ranks.split(",")):
                warm = Path(scratch) / f"warm-{ranks}"
                compare(warm, WARM, ranks, 1, (), silent=True)
                compare(work, name, ranks, options.epochs, options.ways or WAYS)


def compare(work: Path, name: str, ranks: int, epochs: int, ways: tuple[str, ...], silent: bool = False) -> None:
    """Print the rows of one graph on so many ranks."""
    work.mkdir(parents=True, exist_ok=True)
    folder = graph_folder(name, work)
    parts, run, distgnn = work / f"parts-{ranks}", work / f"run-{ranks}", [sys.executable, "-m", "distgnn.cli"]
    given = MODEL | {"epochs": epochs, "eval_every": epochs}
    words = [word for key, value in given.items() for word in (f"--{key.replace('_', '-')}", str(value))]
    cut = measured([*distgnn, "partition", folder, "--parts", ranks, "--out", parts, "--overwrite", "--quiet"])
    train = [*distgnn, "train", parts, "--model", "sage", *words, "--run-dir", run, "--overwrite", "--quiet"]
    trained = measured(train)
    if silent:
        return
    print(f"\n{name}, {ranks} ranks, {epochs} epochs")
    print(f"{'way':20} {'seconds':>8} {'beyond':>8} {'MB':>8} {'beyond':>8}")
    print(
        f"{'partition':20} {cut[0]:8.2f} {'':8} {cut[1]:8.0f}\n{'train':20} {trained[0]:8.2f} {'':8} {trained[1]:8.0f}"
    )
    expected = losses(run)
    for way in ways:
        kind, again = way.split(", ")[1], way.endswith("again")
        out, environment = work / f"out-{ranks}", {"DISTGNN_CACHE": str(work / f"cache-{kind}-{ranks}")}
        command = [sys.executable, "-c", SCRIPT, kind, folder, ranks, out, json.dumps(given)]
        seconds, peak = measured(command, environment)
        if losses(out) != expected:
            sys.exit(f"{way}: losses {losses(out)}, of train {expected}")
        subprocess.run(["rm", "-r", str(out)], check=True)
        before = (trained[0], trained[1]) if again else (cut[0] + trained[0], max(cut[1], trained[1]))
        share = 100 * (peak / before[1] - 1)
        print(f"{way:20} {seconds:8.2f} {seconds - before[0]:+8.2f} {peak:8.0f} {share:+7.1f}%", flush=True)
    print(f"losses are the same: {expected}", flush=True)


def graph_folder(name: str, work: Path) -> Path:
    """The graph as a folder."""
    if Path(name).is_dir():
        return Path(name)
    if not (work / "graph").is_dir():
        load_graph(name).save(work / "graph")
    return work / "graph"


def losses(run: Path) -> list[float]:
    """Of all epochs."""
    return [json.loads(line)["loss"] for line in (run / "metrics.jsonl").read_text().splitlines()]


def measured(command: list, environment: dict[str, str] | None = None) -> tuple[float, float]:
    """Run a command; its seconds and the peak of its processes' memory in MB. Exits with its message where it fails."""
    start = time.perf_counter()
    words = [str(word) for word in command]
    process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True, env=os.environ | (environment or {}))
    peak, ended = [0], threading.Event()

    def watch() -> None:
        while not ended.wait(INTERVAL):
            peak[0] = max(peak[0], sum(map(proportional_kb, tree(process.pid))))

    watcher = threading.Thread(target=watch)
    watcher.start()
    _, text = process.communicate()
    seconds = time.perf_counter() - start
    ended.set()
    watcher.join()
    if process.returncode:
        sys.exit(f"{' '.join(words)}\nexit code {process.returncode}\n{text.strip()}")
    return seconds, peak[0] / 1000


def tree(process: int) -> list[int]:
    """A process and all that descend from it."""
    found = [process]
    for one in found:
        with contextlib.suppress(OSError):  # it ended meanwhile
            for task in Path(f"/proc/{one}/task").glob("*/children"):
                found += map(int, task.read_text().split())
    return found


def proportional_kb(process: int) -> int:
    """Memory of a process, its share of what it shares with others."""
    try:
        lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))


if __name__ == "__main__":
    main()
