"""An epoch as users of DGL and PyG have it beside ours with default flags: real graphs with wide sparse features.

    python tests/bench/door/users.py                                   # the table of the README; 25 min on 2 cores
    python tests/bench/door/users.py cora --models gat --rounds 1      # a line of it
    python tests/bench/door/users.py --show users.json …               # the table of files that are there

One process of two threads each; the same stack (3 layers of 256, layer norm, dropout 0.5), loss and Adam; everybody
takes turns, the first turn is not counted. DGL and PyG have dense features, as in their examples; PyG an edge list
(`pyg/edges`) or torch.sparse (`pyg`), the quicker one. bfloat16: DGL's layers and rows in it, PyG under autocast. Ours:
"script" is `dg.load` and `Trainer` as in the README, "train" the command `distgnn train`, no environment variable set.
Milliseconds: median over all counted epochs of all turns.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.extend(str(Path(__file__).resolve().parents[1] / room) for room in ("epoch", "end_to_end"))
from against_dgl import Process, check_same_loss
from program import DATA_ROOT

from distgnn.config import ModelConfig
from distgnn.system.processor import processor

GRAPHS = ("cora", "coauthor-cs", "facebook-pages")
MODELS = ("gcn", "sage", "gat")
CLASSES = {"gcn": "GCN", "sage": "GraphSAGE", "gat": "GAT"}
THEIRS = ("dgl", "dgl/bfloat16", "pyg", "pyg/edges", "pyg/edges/bfloat16")
DTYPES = ("float32", "bfloat16")
EPOCHS_PER_TURN, OUR_EPOCHS, FIRST = 3, 10, 5  # of ours, so many are not counted
SCRIPT = """
import sys
import distgnn as dg
graph = dg.load(sys.argv[1], dtype=sys.argv[4])
model = getattr(dg.nn, sys.argv[3])(graph.num_feats, 256, graph.num_classes)
result = dg.Trainer(model, graph, dg.TrainConfig(epochs=int(sys.argv[2]), eval_every=1000)).fit()
print("seconds", *[record["seconds"] for record in result.records])
"""
HEAD = (
    "| epoch, ms | DGL | PyG | script | × DGL | × PyG | `distgnn train` | "
    "bfloat16: DGL | PyG | script | × DGL | × PyG | `distgnn train` |"
)


def main() -> None:
    """Measure or show."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("graphs", nargs="*", default=list(GRAPHS))
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", help="file to write, for --show")
    parser.add_argument("--show", action="store_true", help="the arguments are such files")
    options = parser.parse_args()
    if options.show:
        files = [json.loads(Path(name).read_text()) for name in options.graphs]
        show([row for file in files for row in file["rows"]], files[0]["machine"])
        return
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for graph in options.graphs:
            for model in options.models.split(","):
                rows.append(measure(Path(folder), graph, model, options.rounds, options.threads))
                if options.out:
                    Path(options.out).write_text(json.dumps({"machine": processor(), "rows": rows}, indent=1) + "\n")
    show(rows, processor())


def measure(scratch: Path, graph: str, model: str, rounds: int, threads: int) -> dict:
    """One line: median milliseconds of every contestant."""
    parts = scratch / graph
    if not parts.is_dir():
        cut = ["partition", f"{DATA_ROOT}/{graph}", "--parts", 1, "--out", parts, "--quiet"]
        run([sys.executable, "-m", "distgnn.cli", *cut])
    script = scratch / "script.py"
    script.write_text(SCRIPT)
    ways = {}
    for dtype in DTYPES:
        words = [sys.executable, script, parts, OUR_EPOCHS, CLASSES[model], dtype]
        ways[f"script {dtype}"] = lambda words=words: printed(words)
        options = ["--model", model, "--dtype", dtype]
        ways[f"train {dtype}"] = lambda options=options: trained(parts, scratch / "run", OUR_EPOCHS, *options)
    processes = []
    seconds: dict[str, list[float]] = {name: [] for name in (*THEIRS, *ways)}
    try:
        with ThreadPoolExecutor(len(THEIRS)) as pool:  # they start at the same time, and then take turns
            processes += pool.map(lambda name: Process(name, str(parts), ModelConfig(model), 0, threads), THEIRS)
        check_same_loss(processes)
        for turn in range(rounds + 1):
            for process in processes:
                process.train(EPOCHS_PER_TURN if turn else 1)
            for way, once in ways.items() if turn else ():
                seconds[way] += once()[FIRST:]
        for process in processes:
            seconds[process.name] = process.seconds[1:]
    finally:
        for process in processes:
            process.stop()
    medians = {name: 1000 * statistics.median(values) for name, values in seconds.items()}
    print(f"{graph}, {model}:", ", ".join(f"{name} {ms:.1f}" for name, ms in medians.items()), flush=True)
    return {"graph": graph, "model": model, "milliseconds": medians, "counted": {k: len(v) for k, v in seconds.items()}}


def trained(parts: Path, run_dir: Path, epochs: int, *options: str) -> list[float]:
    """Seconds of the epochs of `distgnn train`."""
    words = ["--epochs", epochs, "--eval-every", 1000, "--run-dir", run_dir, "--overwrite", "--quiet", *options]
    run([sys.executable, "-m", "distgnn.cli", "train", parts, *words])
    return [json.loads(line)["seconds"] for line in (run_dir / "metrics.jsonl").read_text().splitlines()]


def printed(command: list) -> list[float]:
    """Seconds of the epochs that a script prints."""
    [line] = [line for line in run(command).splitlines() if line.startswith("seconds")]
    return [float(word) for word in line.split()[1:]]


def run(command: list) -> str:
    """What a command prints, without the environment variables that a launcher sets. Exits where it fails."""
    unset = ("OMP_NUM_THREADS", "DISTGNN_NUM_THREADS", "MKL_NUM_THREADS", "GOMP_SPINCOUNT", "THP_MEM_ALLOC_ENABLE")
    environment = {name: value for name, value in os.environ.items() if name not in unset}
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, env=environment, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\nexit code {done.returncode}\n{done.stderr.strip()}")
    return done.stdout


def show(rows: list[dict], machine: str) -> None:
    """The table; the quicker of PyG's two forms."""
    print(f"\n{machine}, one process, 2 threads\n\n{HEAD}\n|---{'|---' * 12}|")
    for row in rows:
        ms = row["milliseconds"]
        cells = []
        for dtype, dgl, pyg in (
            ("float32", ms["dgl"], min(ms["pyg"], ms["pyg/edges"])),
            ("bfloat16", ms["dgl/bfloat16"], ms["pyg/edges/bfloat16"]),
        ):
            script, train = ms[f"script {dtype}"], ms[f"train {dtype}"]
            cells += [f"{dgl:,.0f}", f"{pyg:,.0f}", f"**{script:,.0f}**", f"{dgl / script:.1f}", f"{pyg / script:.1f}"]
            cells.append(f"{train:,.0f}")
        print(f"| {row['graph']}, {CLASSES[row['model']]} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
