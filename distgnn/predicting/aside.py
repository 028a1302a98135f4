"""Passes over graphs in memory: the rows of a small graph on one rank, and what a pass takes."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from distgnn.config import CutConfig
from distgnn.datasets import GraphData
from distgnn.errors import InputError
from distgnn.partition import partition_graph, read_manifest
from distgnn.predicting.on_rank import Job, predict_part
from distgnn.predicting.within_memory import watched_peak
from distgnn.system.calls.launch import call_on_ranks


def rows_on_one(
    job: Job, config: CutConfig, threads: int | None, graph: GraphData, odd: int | None = None
) -> dict[str, np.ndarray]:
    """The rows of a graph in memory, on this process alone. Args: odd: a vertex whose features are no numbers."""
    with _alone(graph, config) as folder:
        job = replace(job, parts=f"{folder}/parts", folder=folder, odd=odd)
        made = call_on_ranks(predict_part, (job,), 1, threads=threads)[0]
        for name, one in made.items():
            if one is not None:
                raise InputError(f"changed is for rows of vertices, and {name} is none: leave changed out")
        return {name: np.load(Path(folder) / f"{place}.npy") for place, name in enumerate(made)}


def measured(job: Job, tiny: GraphData, small: GraphData, offload: bool, ranks: int) -> tuple[int, dict[str, Any]]:
    """Run the model of a job on two graphs, in processes of its own. For its result see `Measure`."""
    config = CutConfig()
    with _alone(tiny, config, ranks) as first, _alone(small, config, ranks) as second:
        wait, pairs = (job.offload or second) if offload else None, None if job.pairs is None else ""
        of_both = [
            replace(job, parts=f"{folder}/parts", folder=folder, offload=wait, pairs=pairs, speak=False)
            for folder in (first, second)
        ]
        peaks = call_on_ranks(_peak_of_second, (of_both,), ranks, apart=True)
        return max(peaks), read_manifest(f"{second}/parts")


def _peak_of_second(jobs: list[Job]) -> int:
    predict_part(jobs[0])  # kernels are compiled
    with watched_peak() as peak:
        predict_part(jobs[1])
    return peak[0]


@contextmanager
def _alone(graph: GraphData, config: CutConfig, ranks: int = 1) -> Iterator[str]:
    """A folder that holds `parts`."""
    with tempfile.TemporaryDirectory(prefix="distgnn-predict-") as folder:
        partition_graph(graph, ranks, Path(folder) / "parts", config, say=lambda line: None)
        yield folder
