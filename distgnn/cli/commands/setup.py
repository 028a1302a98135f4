"""Commands for a new installation: check it, compile before the first run, download a dataset.

Compiling is for images of containers, and for clusters with a shared cache.
"""

import json
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
from distgnn.cli.options import AsJson, Quiet, Threads
from distgnn.config import DTYPES, EDGE_MODELS, MODELS, check_choice
from distgnn.errors import InputError, RunError
from distgnn.fitting.progress import phases
from distgnn.system.launch import import_mpi, safe_path
from distgnn.system.output import plain, say
from distgnn.system.units import human_seconds

MODEL: Any = typer.Option(["sage"], help="Model to compile for; may be repeated.")
DTYPE: Any = typer.Option(["float32"], help=f"{', '.join(DTYPES)}; may be repeated.")


def check(
    ranks: int = typer.Option(1, help="Ranks to start where none were started."),
    threads: Threads = None,
    as_json: AsJson = False,
) -> None:
    """Verify kernels, MPI, threads and one exact training step on the ranks it is given."""
    from distgnn.cli.places import run_on_ranks

    run_on_ranks(ranks, threads)
    import torch

    from distgnn import kernels
    from distgnn.config import ModelConfig
    from distgnn.datasets import load_graph
    from distgnn.graph.tuning import describe_tuning
    from distgnn.kernels.check.cases import self_check
    from distgnn.nn import build_model
    from distgnn.train.self_check import check_installation

    graph = load_graph("communities:nodes=600,communities=12,avg_degree=10,feats=19,classes=5,seed=1")
    torch.manual_seed(0)
    model = build_model(ModelConfig(hidden_feats=16), 19, 5)
    with phases(import_mpi().COMM_WORLD.rank == 0) as advance:  # the first time kernels are compiled, for minutes
        results = self_check(advance=advance)
    report = check_installation(results, kernels.get_num_threads, graph, model)
    made = kernels.compilation()
    finding = f"{made.compiled} kernels compiled, {made.loaded} loaded from the cache, {made.seconds:.1f} s in all"
    report.add("machine code", True, finding)
    report.add("tuning", True, describe_tuning())
    if report.rank == 0 and as_json:
        print(json.dumps({"ok": report.ok, "findings": report.rows}, indent=1))
    elif report.rank == 0:
        print_table("Checked", report.rows)
    if not report.ok:
        raise typer.Exit(1)


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
    environment = os.environ | safe_path() | ({} if cache is None else {"NUMBA_CACHE_DIR": str(Path(cache).resolve())})
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
        advance("measure", 0, 1)
        program = f"from distgnn.graph.tuning import machine_tuning; machine_tuning({'bfloat16' in dtype})"
        _python(["-c", program], "measuring", environment)
        advance("measure", 1, 1)
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
    _python(["-m", "distgnn.cli", *words], f"distgnn {words[0]}", environment)


def _python(words: list[str], what: str, environment: dict[str, str]) -> None:
    done = subprocess.run([sys.executable, *words], env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RunError(f"{what} failed: {(done.stderr.strip().splitlines() or ['no message'])[-1]}")


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


def download(
    name: str = typer.Argument(help="cora, citeseer, pubmed, reddit, ogbn-arxiv or another of OGB's node graphs."),
    data_root: str | None = typer.Option(None, help="Folder to put it in (default: DISTGNN_DATA or ./data)."),
) -> None:
    """Download a dataset; OGB's need the ogb extra."""
    from distgnn.datasets.downloads import download as fetch

    print(plain(fetch(name, data_root, say)))
