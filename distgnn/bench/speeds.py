"""How fast each rank is, all working at the same time.

Legend: N vertices, E arcs, D width.
"""

import platform
import time
from typing import Any

import numpy as np
import torch

from distgnn import kernels
from distgnn.config import num_threads
from distgnn.graph.loader import use_threads

NUM_NODES, NUM_ARCS, WIDTH = 1 << 15, 1 << 19, 128


def measure_speeds(comm: Any, seconds: float) -> list[dict[str, Any]]:
    """Rounds per second of every rank: one aggregation (N, E, D) and one dense product [N, D] x [D, D] each.

    Collective: yes; all ranks run at the same time, as in training, so that shared cores, caches and memory count.

    Returns: for each rank {rank, host, threads, rounds_per_second, capacity}; capacity is relative to the fastest.
    """
    use_threads(num_threads())
    random = np.random.default_rng(0)
    indptr = np.linspace(0, NUM_ARCS, NUM_NODES + 1).astype(np.int64)
    indices = random.integers(0, NUM_NODES, NUM_ARCS).astype(np.int32)
    feats = random.standard_normal((NUM_NODES, WIDTH)).astype(np.float32)
    weight, out = torch.from_numpy(feats[:WIDTH].copy()), np.empty_like(feats)

    def do_round() -> None:
        kernels.spmm(indptr, indices, feats, out=out)
        torch.from_numpy(out) @ weight

    do_round()  # compiles
    comm.Barrier()
    began, rounds = time.perf_counter(), 0
    while time.perf_counter() - began < seconds:
        do_round()
        rounds += 1
    speed = rounds / (time.perf_counter() - began)
    ranks = comm.allgather((platform.node(), num_threads(), speed))
    fastest = max(speed for *_, speed in ranks)
    return [
        {"rank": rank, "host": host, "threads": threads, "rounds_per_second": speed, "capacity": speed / fastest}
        for rank, (host, threads, speed) in enumerate(ranks)
    ]
