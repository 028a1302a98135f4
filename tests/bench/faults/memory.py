"""How well the memory estimate of `distgnn train` fits: estimate against measured peak, over graphs and models.

    python tests/bench/faults/memory.py WORK [--ranks 2] [--only gat]

Three epochs with an evaluation each; the rank that needs most against the largest estimate. Rows are kept in
WORK/memory.jsonl: a call measures what is missing and compares all of them with the estimate as it is now.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

from distgnn.partition import partition_graph, read_manifest
from distgnn.train.run.estimate import estimate_bytes
from distgnn.train.run.run_folder import read_config

GRAPHS = {
    "communities": "communities:nodes=100000,communities=500,feats=64,classes=16",
    "rmat": "rmat:scale=16,edge_factor=16,feats=128,classes=32",
}
RUNS = (
    "--model sage --num-layers 3 --hidden-feats 128",
    "--model sage --num-layers 5 --hidden-feats 256",
    "--model sage --num-layers 3 --hidden-feats 256 --dtype bfloat16",
    "--model sage --num-layers 3 --hidden-feats 256 --dtype float64",
    "--model sage --num-layers 5 --hidden-feats 256 --remat",
    "--model sage --num-layers 3 --hidden-feats 256 --algorithm cd-2",
    "--model sage --num-layers 3 --hidden-feats 256 --algorithm cd-2 --wire int8",
    "--model sage --num-layers 3 --hidden-feats 256 --algorithm cd-2 --update copies",
    "--model sage --num-layers 4 --hidden-feats 128 --jump cat",
    "--model gcn --num-layers 2 --hidden-feats 64",
    "--model gin --num-layers 3 --hidden-feats 128",
    "--model gat --num-layers 2 --hidden-feats 64",
    "--model gat --num-layers 3 --hidden-feats 256",
    "--model gatv2 --num-layers 3 --hidden-feats 128",
    "--model gcn2 --num-layers 8 --hidden-feats 128",
    "--model appnp --num-layers 2 --hidden-feats 128",
)


def measure(parts: Path, run: Path, words: str) -> dict:
    """Train; the largest peak of a rank, and the settings as the run folder has them."""
    command = [sys.executable, "-m", "distgnn.cli", "train", str(parts), *words.split(), "--epochs", "3"]
    command += ["--eval-every", "1", "--run-dir", str(run), "--overwrite", "--quiet", "--threads", "1"]
    subprocess.run(command, check=True, timeout=900)
    peaks = json.loads((run / "summary.json").read_text())["peak_rss_bytes"]
    return {"peak_rss_bytes": max(peaks), "settings": read_config(str(run))}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("work", type=Path)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--only", default="", help="runs whose words hold this")
    args = parser.parse_args()
    args.work.mkdir(parents=True, exist_ok=True)
    log = args.work / "memory.jsonl"
    rows = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
    ratios = []
    for title, spec in GRAPHS.items():
        for words in RUNS:
            if args.only not in words:
                continue
            parts = args.work / f"{title}-{args.ranks}"
            if not parts.exists():
                partition_graph(spec, args.ranks, parts, method="libra")
            key = {"graph": title, "ranks": args.ranks, "words": words}
            row = next((row for row in rows if key.items() <= row.items()), None)
            if row is None:
                row = key | measure(parts, args.work / "run", words)
                with open(log, "a", encoding="utf-8") as stream:
                    stream.write(json.dumps(row) + "\n")
            manifest, measured = read_manifest(parts), row["peak_rss_bytes"]
            estimated = max(estimate_bytes(manifest, part_id, row["settings"]) for part_id in range(args.ranks))
            ratios.append(estimated / measured)
            print(
                f"{title:12} {words:90} estimate {estimated / 1e6:5.0f} MB, measured {measured / 1e6:5.0f} MB, "
                f"ratio {ratios[-1]:.2f}",
                flush=True,
            )
    print(f"{len(ratios)} runs on {args.ranks} ranks: estimate / measured from {min(ratios):.2f} to {max(ratios):.2f}")


if __name__ == "__main__":
    main()
