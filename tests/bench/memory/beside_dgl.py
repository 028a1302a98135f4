"""Peak memory of training beside DGL's and PyTorch Geometric's: the same stack and weights, one process each.

    distgnn partition communities:nodes=75000,avg_degree=40,communities=300,mixing=0.3,feats=100,classes=47 \\
        --parts 1 --out parts
    python tests/bench/memory/beside_dgl.py parts

An evaluation and some epochs of each, one contestant after the other (`tests/bench/epoch/contestant.py`). The peak is
VmHWM with libraries. "pyg" multiplies by a torch.sparse CSR matrix, which its attention cannot; "pyg/edges" has an edge
list. Losses of the first weights must be the same. Not run by pytest.
"""

import argparse
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent.parent / "epoch"))
from against_dgl import SAME_LOSS, Process

from distgnn.config import ModelConfig, num_threads

NAMES = ("dgl", "pyg", "pyg/edges", "distgnn")
OURS = NAMES.index("distgnn")


def measure(parts: str, name: str, model: ModelConfig, epochs: int) -> tuple[float, int]:
    """The loss of the first weights, and the peak in bytes."""
    process = Process(name, parts, model, 0, num_threads())
    try:
        process.train(epochs)
        return process.start_loss, process.finish()["peak_rss_bytes"]
    finally:
        process.stop()


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", help="folder of one part")
    parser.add_argument("--models", nargs="+", default=["sage", "gcn", "gat", "gin", "gcn2"])
    parser.add_argument("--norm", default="layer")
    parser.add_argument("--epochs", type=int, default=3)
    args = parser.parse_args()
    print(f"| model | {' | '.join(f'{name}, MB' for name in NAMES)} | of dgl | of the smallest |")
    print("|---" * (len(NAMES) + 3) + "|")
    for name in args.models:
        model = ModelConfig(name, 256, 3, norm=args.norm)
        found = {}
        for one in NAMES:
            if (name, one) != ("gat", "pyg"):
                found[one] = measure(args.parts, one, model, args.epochs)
        losses = [loss for loss, _ in found.values()]
        if max(losses) - min(losses) > SAME_LOSS * max(losses):
            raise SystemExit(f"{name}: the contestants do not train one model: losses {losses}")
        peaks = {one: peak / 1e6 for one, (_, peak) in found.items()}
        ours = peaks.pop("distgnn")
        cells = [f"{peaks[one]:.0f}" if one in peaks else "–" for one in NAMES[:OURS]]
        cells += [f"{ours:.0f}", f"{ours / peaks['dgl']:.2f}", f"{ours / min(peaks.values()):.2f}"]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
