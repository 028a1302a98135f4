"""`distgnn warmup`: compile before the first run, for images of containers and clusters with a shared cache."""

import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import typer

from distgnn.cli.display import print_table
from distgnn.cli.options import Quiet
from distgnn.config import DTYPES, EDGE_MODELS, MODELS, check_choice
from distgnn.errors import InputError, RunError
from distgnn.fitting.progress import phases
from distgnn.system.units import human_seconds

MODEL: Any = typer.Option(["sage"], help="Model to compile for; may be repeated.")
DTYPE: Any = typer.Option(["float32"], help=f"{', '.join(DTYPES)}; may be repeated.")


def warmup(
    model: list[str] = MODEL,
    dtype: list[str] = DTYPE,
    feats: int = typer.Option(128, help="Width of features."),
    hidden_feats: int = typer.Option(256, help="Width of hidden layers."),
    classes: int = typer.Option(40, help="Number of classes."),
    cache: str | None = typer.Option(None, help="Folder for compiled kernels; later runs need it as NUMBA_CACHE_DIR."),
    quiet: Quiet = False,
) -> None:
    """Compile what cutting and training need, before the first run; kernels depend on models, dtypes and widths."""
    from distgnn.config import num_threads

    for name in model:
        check_choice("model", name, MODELS)
        if name in (*EDGE_MODELS, "rgcn"):
            raise InputError(f"warmup has no graph for {name}, which needs edge features or types: train one epoch")
    for name in dtype:
        check_choice("dtype", name, DTYPES)
    environment = os.environ | ({} if cache is None else {"NUMBA_CACHE_DIR": str(Path(cache).resolve())})
    start, before = time.perf_counter(), _compiled(environment)
    runs = [["--model", one, "--dtype", other] for one in dict.fromkeys(model) for other in dict.fromkeys(dtype)]
    with tempfile.TemporaryDirectory() as folder, phases(not quiet) as advance:
        parts = f"{folder}/parts"
        _distgnn(["partition", small_graph(feats, classes), "--parts", "2", "--out", parts, "--quiet"], environment)
        advance("cut", 1, 1)

        def train(number: int) -> None:
            options = ["--epochs", "2", "--eval-every", "1", "--hidden-feats", str(hidden_feats), "--quiet"]
            _distgnn(["train", parts, *runs[number], *options, "--run-dir", f"{folder}/{number}"], environment)

        # Two ranks each: what they share is compiled once, and a rank that waits for a lock needs no core.
        with ThreadPoolExecutor(num_threads()) as pool:
            for done, _ in enumerate(pool.map(train, range(len(runs))), 1):
                advance("train", done, len(runs))
    if not quiet:
        found = _compiled(environment)
        rows = [("compiled", f"{len(found - before)} kernels in {human_seconds(time.perf_counter() - start)}")]
        rows += [("cache", f"{len(found)} kernels in {_cache(environment)[0]}")]
        print_table("Warmed up", rows)


def small_graph(feats: int, classes: int) -> str:
    """A graph of these widths to compile with; every class has some vertices."""
    nodes, communities = max(600, 10 * classes), max(12, classes)
    return f"communities:nodes={nodes},communities={communities},avg_degree=10,feats={feats},classes={classes},seed=1"


def _distgnn(words: list[str], environment: dict[str, str]) -> None:
    command = [sys.executable, "-m", "distgnn.cli", *words]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RunError(f"distgnn {words[0]} failed: {(done.stderr.strip().splitlines() or ['no message'])[-1]}")


def _cache(environment: dict[str, str]) -> list[Path]:
    """The folders below which numba keeps our kernels."""
    if environment.get("NUMBA_CACHE_DIR"):
        return [Path(environment["NUMBA_CACHE_DIR"])]
    import distgnn.kernels
    import distgnn.partition
    from distgnn.kernels.runtime.jit import cache_folder

    folder = cache_folder()
    if folder is None:
        raise InputError("no folder for compiled kernels can be written: give --cache")
    if folder.name == "__pycache__":  # beside each source
        return [Path(str(package.__file__)).parent for package in (distgnn.kernels, distgnn.partition)]
    return [folder.parent]


def _compiled(environment: dict[str, str]) -> set[Path]:
    return {file for folder in _cache(environment) for file in folder.rglob("*.nbc")}
