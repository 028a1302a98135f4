"""How well the memory estimate of `distgnn train` fits: estimate against measured peaks, over graphs, models, ranks.

python tests/bench/faults/memory.py WORK
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

from distgnn.partition import partition_graph, read_manifest
from distgnn.train.memory import estimate_bytes

GRAPHS = {
    "communities, 100,000 vertices": "communities:nodes=100000,communities=500,feats=64,classes=16",
    "rmat, 2^16 vertices, 1 M edges": "rmat:scale=16,edge_factor=16,feats=128,classes=32",
}
MODELS = (("sage", 3, 128), ("gcn", 2, 64), ("gat", 2, 64), ("sage", 5, 256))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("work", type=Path)
    parser.add_argument("--ranks", type=int, default=2)
    args = parser.parse_args()
    args.work.mkdir(parents=True, exist_ok=True)
    for number, (title, spec) in enumerate(GRAPHS.items()):
        parts = args.work / f"parts-{number}-{args.ranks}"
        if not parts.exists():
            partition_graph(spec, args.ranks, parts, method="libra")
        manifest = read_manifest(parts)
        for name, layers, hidden in MODELS:
            run = args.work / "run"
            words = ["--model", name, "--num-layers", layers, "--hidden-feats", hidden, "--epochs", 3]
            command = [sys.executable, "-m", "distgnn.cli", "train", str(parts), *map(str, words)]
            command += ["--run-dir", str(run), "--overwrite", "--quiet", "--threads", "1"]
            subprocess.run(command, check=True, timeout=280)
            measured = max(json.loads((run / "summary.json").read_text())["peak_rss_bytes"])
            model = {"name": name, "num_layers": layers, "hidden_feats": hidden, "num_heads": 4}
            estimated = max(estimate_bytes(manifest, part_id, model) for part_id in range(args.ranks))
            print(
                f"{title}, {name} {layers} × {hidden}: estimate {estimated / 1e6:.0f} MB, "
                f"measured {measured / 1e6:.0f} MB, ratio {estimated / measured:.2f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
