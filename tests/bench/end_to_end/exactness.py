"""P ranks compute what one process computes: losses, first gradient and predictions, measured on real graphs.

    python tests/bench/end_to_end/exactness.py                 # everything; about 20 min on 2 cores
    python tests/bench/end_to_end/exactness.py cora corners    # some of it: the names of GRAPHS below, and corners

Everything goes through the commands `distgnn partition`, `train` and `predict`. Prints a table per graph, a row per
dtype and rank count:

    loss        largest relative difference to one rank of 30 losses (3-layer GraphSAGE, dropout 0.5, layer norm)
    cosine      1 - cosine of the first gradient with plain DGL's: whole graph, one process, same weights, dropout off
    norm        relative difference of the norms of these two gradients
    predict     largest difference of logits to one rank's / largest logit, in original vertex order; in float64 with
                this run's own weights, in float32 with the one-rank run's (30 steps of Adam magnify rounding)

and whether it keeps the bounds: losses 2e-5 (float32), 1e-10 (float64); cosine 1e-5; norm 1e-4; predict 1e-5.
Hidden layers are 64 wide, so that 8 ranks on 2 cores take minutes; cora-256 and arxiv-256 are the wide cases.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from corners import CORNERS, write_corner
from program import distgnn, on_ranks, partition, print_machine, train

RANKS = (1, 2, 3, 4, 8)
LOSS_BOUNDS = {"float32": 2e-5, "float64": 1e-10}
BOUNDS = {"cosine": 1e-5, "norm": 1e-4, "predict": 1e-5}
EPOCHS = ("--epochs", 30, "--eval-every", 30, "--threads", 1)
GRAPHS = {  # name -> (source, direction, hidden width, rank counts)
    "cora": ("cora", "stored", 64, RANKS),
    "cora-256": ("cora", "stored", 256, RANKS),
    "arxiv-both": ("ogbn-arxiv", "both", 64, RANKS),
    "arxiv-stored": ("ogbn-arxiv", "stored", 64, RANKS),
    "arxiv-32": ("ogbn-arxiv", "both", 32, (1, 2, 4, 8)),
    "arxiv-256": ("ogbn-arxiv", "both", 256, (1, 4)),
}
COLUMNS = ("loss", "cosine", "norm", "predict")
GRADIENT = str(Path(__file__).with_name("first_gradient.py"))


class Case:
    """One graph at one width and dtype; its first run is what the others are compared with."""

    def __init__(self, scratch: Path, dtype: str, hidden: int, dgl_words: tuple | None):
        self.scratch, self.dtype, self.hidden, self.dgl_words = scratch, dtype, hidden, dgl_words
        self.first: dict | None = None

    def measure(self, parts: Path, ranks: int) -> dict[str, float]:
        """Train, predict and differentiate on this cut; differences to the first cut and to DGL."""
        run_dir = self.scratch / f"run-{self.dtype}-{parts.name}"
        summary = train(parts, run_dir, "--dtype", self.dtype, "--hidden-feats", self.hidden, *EPOCHS)
        losses = np.array(summary["losses"])
        own = self.first is None or self.dtype == "float64"
        logits = self._predict(run_dir if own else self.first["run"], parts)
        self.first = self.first or {"run": run_dir, "losses": losses, "logits": logits, "dgl": None}
        differences = {
            "loss": np.max(np.abs(losses / self.first["losses"] - 1)),
            "predict": np.max(np.abs(logits - self.first["logits"])) / np.max(np.abs(self.first["logits"])),
        }
        return differences if self.dgl_words is None else differences | self._gradient(parts, ranks)

    def _predict(self, run_dir: Path, parts: Path) -> np.ndarray:
        distgnn("predict", run_dir, parts, "--out", self.scratch / "logits.npy", "--overwrite", "--quiet")
        return np.load(self.scratch / "logits.npy")

    def _gradient(self, parts: Path, ranks: int) -> dict[str, float]:
        ours = self.scratch / "ours.npz"
        on_ranks(ranks, GRADIENT, "ours", parts, self.dtype, self.hidden, ours)
        if self.first["dgl"] is None:
            theirs = self.scratch / "dgl.npz"
            subprocess.run([sys.executable, GRADIENT, "dgl", *self.dgl_words, ours, theirs], check=True)
            self.first["dgl"] = _flat(theirs)
        mine, theirs = _flat(ours), self.first["dgl"]
        lengths = np.linalg.norm(mine), np.linalg.norm(theirs)
        return {"cosine": 1 - mine @ theirs / lengths[0] / lengths[1], "norm": abs(lengths[0] / lengths[1] - 1)}


def _flat(file: Path) -> np.ndarray:
    """All gradients of a file, end to end, as float64."""
    with np.load(file) as arrays:
        return np.concatenate([arrays[name].ravel() for name in sorted(arrays) if name.startswith("grad.")]).astype(
            float
        )


def _print_row(label: str, dtype: str, row: dict[str, float]) -> bool:
    """Print one row; whether it keeps the bounds."""
    bounds = BOUNDS | {"loss": LOSS_BOUNDS[dtype]}
    good = all(row[name] <= bound for name, bound in bounds.items() if name in row)
    cells = (f"{row[name]:9.1e}" if name in row else f"{'-':>9}" for name in COLUMNS)
    print(f"{label:>24} {dtype:>8} {' '.join(cells)}  {'ok' if good else 'FAILED'}", flush=True)
    return good


def _print_head(title: str) -> None:
    print(f"\n{title}\n{'ranks':>24} {'dtype':>8} {' '.join(f'{name:>9}' for name in COLUMNS)}", flush=True)


def measure_graph(name: str, scratch: Path) -> bool:
    """A table for one graph: every rank count, both dtypes."""
    source, direction, hidden, rank_counts = GRAPHS[name]
    _print_head(f"{name}: {source} --direction {direction}, GraphSAGE 3 x {hidden}")
    good = True
    for dtype in LOSS_BOUNDS:
        case = Case(scratch, dtype, hidden, (source, direction))
        for ranks in rank_counts:
            parts = scratch / f"{name}-{ranks}"
            partition(source, ranks, parts, "--direction", direction)
            good &= _print_row(str(ranks), dtype, case.measure(parts, ranks))
    return good


def measure_corners(scratch: Path) -> bool:
    """Cuts that are made on purpose (corners.py), each against one part of the same graph."""
    _print_head("corners: cora and a graph of small components, GraphSAGE 3 x 64")
    good = True
    for name in CORNERS:
        for dtype in LOSS_BOUNDS:
            case = Case(scratch, dtype, 64, None)
            case.measure(write_corner(name, scratch / f"{name} 1", num_parts=1), 1)
            for ranks in CORNERS[name]:
                parts = write_corner(name, scratch / f"{name} {ranks}", num_parts=ranks)
                good &= _print_row(f"{name} {ranks}", dtype, case.measure(parts, ranks))
    return good


def main() -> None:
    """Measure what the command line names, or everything."""
    wanted = sys.argv[1:] or [*GRAPHS, "corners"]
    print_machine()
    good = []
    for name in wanted:
        with tempfile.TemporaryDirectory() as scratch:
            place = Path(scratch)
            good.append(measure_corners(place) if name == "corners" else measure_graph(name, place))
    sys.exit(not all(good))


if __name__ == "__main__":
    main()
