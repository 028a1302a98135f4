"""Fingerprints of results that a change of structure must not move: losses, weights, part files, to the bit.

    python tests/bench/end_to_end/same_bits.py [--out bits.json] [--compare bits.json]
    /path/to/other/checkout/.venv/bin/python tests/bench/end_to_end/same_bits.py --compare bits.json    in that checkout

Trains cora GCN on one rank, ogbn-arxiv GraphSAGE exact and with `cd-5` int8 and GAT in bfloat16 on two ranks, 20 epochs
each and one thread per rank, and cuts three graphs. Prints one line per case: SHA-256 of the 20 losses, of the best
weights (names, dtypes, bytes), or of all arrays in the part folders. Measured choices of kernels may differ
between runs and move the rounding, so tuning is off. With `--compare`, exits with 1 where a case differs.
"""

import argparse
import hashlib
import json
import sys
import tempfile
from pathlib import Path

import numpy as np
from program import DATA_ROOT, distgnn
from safetensors.numpy import load_file

TRAINED = {  # name -> (cut, options of `train`)
    "cora gcn": ("cora-1", "--model gcn --num-layers 2 --hidden-feats 16"),
    "arxiv sage cd-0": ("arxiv-2", "--model sage --hidden-feats 64"),
    "arxiv sage cd-5 int8": ("arxiv-2", "--model sage --hidden-feats 64 --algorithm cd-5 --wire int8"),
    "arxiv gat bfloat16": ("arxiv-2", "--model gat --hidden-feats 64 --dtype bfloat16"),
}
CUTS = {  # name -> (source, options of `partition`)
    "cora-1": (f"{DATA_ROOT}/cora", "--parts 1"),
    "arxiv-2": ("ogbn-arxiv", "--parts 2 --direction both"),
    "arxiv-8 one way": ("ogbn-arxiv", "--parts 8 --direction stored"),
    "web-notredame-8": (f"{DATA_ROOT}/web-notredame", "--parts 8"),
    "rmat-4": ("rmat:scale=14,edge_factor=16,feats=8,classes=4", "--parts 4"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--compare", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = fingerprints(Path(folder))
    if options.out:
        options.out.write_text(json.dumps(found, indent=1) + "\n")
    if options.compare:
        before = json.loads(options.compare.read_text())
        differing = [name for name in before if before[name] != found.get(name)]
        print(f"{len(before) - len(differing)} of {len(before)} cases have the same bits")
        sys.exit(f"different: {', '.join(differing)}" if differing else 0)


def fingerprints(scratch: Path) -> dict[str, str]:
    found = {}
    for name, (source, words) in CUTS.items():
        options = ["--out", scratch / name, "--data-root", DATA_ROOT, "--quiet", *words.split()]
        distgnn("partition", source, *options, DISTGNN_TUNING="off")
        found[f"cut {name}"] = digest_of_cut(scratch / name)
        print(f"cut {name}: {found[f'cut {name}']}", flush=True)
    for name, (cut, words) in TRAINED.items():
        folder = scratch / name.replace(" ", "-")
        options = ["--epochs", 20, "--eval-every", 5, "--seed", 0, "--threads", 1, "--run-dir", folder, "--quiet"]
        distgnn("train", scratch / cut, *options, *words.split(), DISTGNN_TUNING="off")
        lines = (folder / "metrics.jsonl").read_text().splitlines()
        losses = np.array([json.loads(line)["loss"] for line in lines])
        found[f"losses {name}"] = hashlib.sha256(losses.tobytes()).hexdigest()
        found[f"weights {name}"] = digest_of_weights(folder / "checkpoint" / "best.safetensors")
        print(f"{name}: losses {found[f'losses {name}']}, weights {found[f'weights {name}']}", flush=True)
    return found


def digest_of_cut(folder: Path) -> str:
    """Of every array of every part, with its name."""
    total = hashlib.sha256()
    for path in sorted(folder.glob("part-*/*.npy")):
        total.update(str(path.relative_to(folder)).encode() + path.read_bytes())
    return total.hexdigest()


def digest_of_weights(path: Path) -> str:
    total = hashlib.sha256()
    for name, weight in sorted(load_file(path).items()):
        total.update(f"{name} {weight.dtype} {weight.shape}".encode() + weight.tobytes())
    return total.hexdigest()


if __name__ == "__main__":
    main()
