"""Runs the installed program as a user does, and says on what machine. Shared by the scripts beside it."""

import json
import os
import platform
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

from distgnn.config import ModelConfig, TrainConfig
from distgnn.config.option import rarely_set
from distgnn.system.processor import processor

CHECKOUT = Path(__file__).resolve().parents[3]
DATA_ROOT = os.environ.get("DISTGNN_DATA") or str(CHECKOUT.parent / "shared" / "data")


def distgnn(*words, checkout: Path = CHECKOUT, **environment: str) -> subprocess.CompletedProcess:
    """Run `distgnn WORDS` of a checkout in a process of its own; its output is captured. Exits where it fails."""
    command = [sys.executable, "-m", "distgnn.cli", *map(str, words)]
    environment = os.environ | {"PYTHONPATH": str(checkout)} | environment
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if done.returncode:
        sys.exit(f"{' '.join(command)}\nexit code {done.returncode}\n{done.stderr.strip()}")
    return done


def partition(source, num_parts: int, out: Path, *words) -> dict:
    """Cut into `out` (kept where it is already there); returns partition.json."""
    if not (out / "partition.json").is_file():
        distgnn("partition", source, "--parts", num_parts, "--out", out, "--data-root", DATA_ROOT, "--quiet", *words)
    return json.loads((out / "partition.json").read_text())


def train_seeds(parts: Path, run_dir: Path, seeds: range, *words) -> list[dict]:
    """summary.json of each seed, of one `distgnn train --runs` that replaces `run_dir`."""
    shutil.rmtree(run_dir, ignore_errors=True)
    words = (*words, "--runs", len(seeds), "--seed", seeds[0], "--threads", 1)
    distgnn("train", parts, "--run-dir", run_dir, "--quiet", *words)
    folders = [run_dir / f"seed-{seed}" for seed in seeds] if len(seeds) > 1 else [run_dir]
    return [json.loads((folder / "summary.json").read_text()) for folder in folders]


def machine() -> dict[str, str]:
    """What a number depends on: processor, memory, versions, commit."""
    git = ["git", "-C", str(CHECKOUT), "describe", "--always", "--dirty"]
    commit = subprocess.run(git, capture_output=True, text=True, check=False).stdout.strip()
    packages = ("torch", "numba", "numpy", "mpi4py", "mpich", "dgl")
    return {
        "processor": f"{processor()}, {os.cpu_count()} cores",
        "memory": f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB",
        "python": platform.python_version(),
        **{name: metadata.version(name) for name in packages},
        "commit": commit,
    }


def words_of(options: dict) -> list[str]:
    """Options of `train` or `partition` on the command line; rare ones as `--set NAME=VALUE`."""
    rare = {name for kind in (ModelConfig, TrainConfig) for name in rarely_set(kind)}
    pairs = [
        (["--set", f"{name}={value}"] if name in rare else [f"--{name.replace('_', '-')}", str(value)])
        for name, value in options.items()
    ]
    return [word for pair in pairs for word in pair]
