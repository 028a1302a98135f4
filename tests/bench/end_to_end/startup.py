"""Time from the command to the first finished epoch, with kernels compiled before (warm) and not (cold).

    python tests/bench/end_to_end/startup.py              # cora on 1, 2 and 4 ranks; a minute
    python tests/bench/end_to_end/startup.py communities:nodes=30000 --cold   # cold too: half a minute each

"total" is measured outside: from starting `distgnn train` until metrics.jsonl has its first line; median of the
repeats, and all of them. "processor" is the time in which any of the command's processes ran, over its two epochs and
evaluation: on a busy machine it is what can be compared. The columns after it are rank 0's in a process that makes the
same steps one after the other (phases.py): "python" from the start of mpiexec to the first line of Python, "mpi"
importing mpi4py with MPI_Init, "torch" and "numba" their imports, "ours" our own modules, "load" the part, "epoch" the
first epoch. What total has more is the launcher: the first `distgnn`, which reads the number of parts.
"""

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from program import on_ranks, partition, print_machine

LIMIT_SECONDS = 120
PHASES = str(Path(__file__).with_name("phases.py"))


def total_seconds(parts: Path, run_dir: Path, environment: dict[str, str]) -> tuple[float, float]:
    """Start the command; seconds until the first epoch is on disk, and processor seconds of the whole command."""
    words = ["train", parts, "--run-dir", run_dir, "--epochs", 2, "--eval-every", 2, "--quiet", "--overwrite"]
    metrics = run_dir / "metrics.jsonl"
    metrics.unlink(missing_ok=True)
    started = time.perf_counter()
    command = [str(Path(sys.executable).with_name("distgnn")), *map(str, words)]
    process = subprocess.Popen(command, env=environment)
    while not (metrics.is_file() and metrics.stat().st_size):
        if process.poll() or time.perf_counter() - started > LIMIT_SECONDS:
            sys.exit(f"{' '.join(command)}: no epoch (exit code {process.poll()})")
        time.sleep(0.005)
    seconds = time.perf_counter() - started
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    process.wait()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure(parts: Path, ranks: int, repeats: int, cache: str | None) -> None:
    """One row; `cache` is a folder for compiled kernels that is empty at the start, or None for the usual one."""
    totals = []
    for repeat in range(repeats if cache is None else 1):
        extra = {} if cache is None else {"NUMBA_CACHE_DIR": f"{cache}/{repeat}"}
        totals.append(total_seconds(parts, parts.with_name(f"run-{ranks}"), dict(os.environ) | extra))
    seconds, processor = ([one[column] for one in totals] for column in (0, 1))
    row, kind = " ".join(f"{one:.2f}" for one in seconds), "warm" if cache is None else "cold"
    print(f"{ranks} ranks, {kind}: total {statistics.median(seconds):.2f} s ({row})", end="; ")
    print(f"processor {statistics.median(processor):.2f} s", flush=True)
    if cache is None:
        on_ranks(ranks, PHASES, parts, time.time())


def main() -> None:
    """Measure each rank count."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source", nargs="?", default="cora")
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--cold", action="store_true")
    options = parser.parse_args()
    print_machine()
    with tempfile.TemporaryDirectory() as scratch:
        for ranks in options.ranks:
            parts = Path(scratch) / f"parts-{ranks}"
            partition(options.source, ranks, parts)
            measure(parts, ranks, options.repeats, None)
            if options.cold:
                measure(parts, ranks, 1, f"{scratch}/cache-{ranks}")


if __name__ == "__main__":
    main()
