"""Peak memory per rank at 4 parts against one rank, on a graph of 1 M vertices and 16 M edges with 100 features.

    python tests/bench/end_to_end/memory.py              # 3-layer GraphSAGE-256, 3 epochs; 24 GB must be free
    python tests/bench/end_to_end/memory.py --scale 16   # the same on 65,536 vertices, in a minute
    python tests/bench/end_to_end/memory.py --parts 4    # one rank count only

Prints for each rank count every rank's peak resident memory (what the program reports in summary.json), the seconds
of the epochs, and the largest peak's share of the one-rank run's (bound: 40 %).
"""

import argparse
import sys
import tempfile
from pathlib import Path

from program import partition, print_machine, train

BOUND = 0.4


def measure(source: str, num_parts: int, epochs: int, scratch: Path) -> int:
    """Cut, load, train; print; returns the largest peak in bytes."""
    parts = scratch / f"parts-{num_parts}"
    manifest = partition(source, num_parts, parts)
    print(
        f"\n{num_parts} parts: replication factor {manifest['replication_factor']:.3f}, {sizes(manifest)}", flush=True
    )
    summary = train(parts, scratch / f"run-{num_parts}", "--epochs", epochs, "--eval-every", epochs)
    peaks = summary["peak_rss_bytes"]
    seconds = " ".join(f"{one:.1f}" for one in summary["epoch_seconds"])
    print(f"peak {' '.join(f'{peak / 1e9:.2f}' for peak in peaks)} GB; epochs {seconds} s", flush=True)
    return max(peaks)


def sizes(manifest: dict) -> str:
    """Rows of the largest part."""
    names = ("owned", "source_halos", "target_halos", "arcs")
    return ", ".join(f"{name} {max(part[name] for part in manifest['parts']):,}" for name in names)


def main() -> None:
    """Measure and compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scale", type=int, default=20)
    parser.add_argument("--parts", type=int, nargs="+", default=[1, 4])
    parser.add_argument("--epochs", type=int, default=3)
    options = parser.parse_args()
    print_machine()
    source = f"rmat:scale={options.scale},edge_factor=16,feats=100,classes=47"
    with tempfile.TemporaryDirectory() as scratch:
        peaks = {num_parts: measure(source, num_parts, options.epochs, Path(scratch)) for num_parts in options.parts}
    first, failed = peaks[options.parts[0]], False
    for num_parts, peak in list(peaks.items())[1:]:
        verdict = "ok" if peak < BOUND * first else "FAILED"
        failed |= verdict == "FAILED"
        print(f"\n{num_parts} parts: {100 * peak / first:.1f} % of the {options.parts[0]}-part run's peak: {verdict}")
    sys.exit(failed)


if __name__ == "__main__":
    main()
