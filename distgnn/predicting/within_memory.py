"""`dg.predict(…, memory=)`: what a pass without gradients takes of a rank, and a refusal before ranks are started.

A pass over a random graph with the columns and the degree of the one that is meant is measured, in another process:

    slope     anonymous bytes of the pass, above a tiny one's before, on one rank, for each vertex
    halo      of the pass on two ranks, what is beyond, for each halo
    a rank's  PROGRAM_BYTES + MARGIN · (O · slope + (S + T) · halo)

Legend: O owned rows, S and T source and target halos. Pages of mapped files do not count: the kernel drops them.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from distgnn.datasets import GraphData
from distgnn.errors import InputError
from distgnn.kernels import give_back_freed_memory
from distgnn.partition import load_part
from distgnn.system.units import human_bytes, parse_bytes, resident

VERTICES, ARCS = 1 << 16, 1 << 22  # of the larger graph, at most
PROGRAM_BYTES = 345_000_000  # 200 MB, and 100 MB more of one that compiles
MARGIN = 1.1  # peaks between two looks, and other shapes of graphs
INTERVAL = 0.002  # seconds
OTHER_PARTS, MOST_RANKS = 1.2, 256  # halos grow where parts are more

Measure = Callable[[GraphData, GraphData, bool, int], tuple[int, dict[str, Any]]]
"""(a tiny graph, a small one, with offload?, ranks) -> (bytes of the second's pass above the first's, of the rank that
takes most; the manifest of the second's cut)."""


def check_limit(limit: str | int | None, folder: str, manifest: dict[str, Any], offload: bool, measure: Measure) -> str:
    """A line on what a rank takes. Raises: InputError where it is more than the limit, with what would fit."""
    parts, most = manifest["parts"], 0 if limit is None else parse_bytes(limit)
    if limit is not None and most <= PROGRAM_BYTES:
        raise InputError(f"memory is {human_bytes(most)}, and the program alone takes {human_bytes(PROGRAM_BYTES)}")
    needed = _needed(folder, manifest, offload, measure)
    rank = int(np.argmax(needed))
    line = f"memory: about {human_bytes(needed[rank])} a rank, beside mapped files"
    if limit is None:
        return line if offload else f"{line}; with offload {human_bytes(max(_needed(folder, manifest, True, measure)))}"
    if needed[rank] <= most:
        return f"{line}, of {human_bytes(most)}"
    ranks = int(len(parts) * OTHER_PARTS * (needed[rank] - PROGRAM_BYTES) / (most - PROGRAM_BYTES)) + 1
    fits = [f"{max(ranks, len(parts) + 1)} ranks"] if ranks < MOST_RANKS else []
    less = most if offload else max(_needed(folder, manifest, True, measure))
    fits += [f"offload ({human_bytes(less)})"] if not offload and less <= most else []
    raise InputError(
        f"rank {rank} needs about {human_bytes(needed[rank])} beside mapped files, and memory is {human_bytes(most)}"
        + (f": take {' or '.join(fits)}" if fits else "")
    )


def _needed(folder: str, manifest: dict[str, Any], offload: bool, measure: Measure) -> list[int]:
    """Bytes by rank."""
    first, parts = load_part(folder, 0, check=False), manifest["parts"]
    degree = max(1, -(-sum(part["arcs"] for part in parts) // max(1, manifest["num_nodes"])))
    size = max(64, min(VERTICES, ARCS // degree))
    try:
        graphs, halo = (_like(first, 64, degree), _like(first, size, degree)), 0.0
        slope = measure(*graphs, offload, 1)[0] / size
        if len(parts) > 1:
            peak, cut = measure(*graphs, offload, 2)
            owned, halos = (max(map(one, cut["parts"])) for one in (_owned, _halos))
            halo = max(0.0, peak - owned * slope) / max(1, halos)
    except InputError as error:
        raise InputError(f"memory is estimated on a small graph, where the model fails: {error}") from error
    return [int(PROGRAM_BYTES + MARGIN * (_owned(part) * slope + _halos(part) * halo)) for part in parts]


def _owned(part: dict[str, Any]) -> int:
    return int(part["owned"])


def _halos(part: dict[str, Any]) -> int:
    return int(part["source_halos"] + part["target_halos"])


def _like(part: Any, size: int, degree: int) -> GraphData:
    """A random graph with the columns of a part."""
    random, arcs = np.random.default_rng(0), size * degree

    def some(array: Any, rows: int) -> Any:
        return None if array is None or not len(array) else array[np.arange(rows) % len(array)]

    kinds = some(part.node_types, size)
    feats = None if part.feats is None else part.feats[np.arange(size) % part.feats.shape[0]]
    by_arc = {name: some(getattr(part, name), arcs) for name in ("edge_weight", "edge_feats", "edge_types")}
    edges = random.integers(0, size, (arcs, 2))
    names = {name: part.graph[name] for name in ("edge_type_names", "node_type_names") if part.graph.get(name)}
    return GraphData("like", size, edges, True, feats=feats, node_types=kinds, **by_arc, **names)


@contextmanager
def watched_peak() -> Iterator[list[int]]:
    """Within, this process's anonymous memory is looked at; behind, one number: bytes at the peak above the start."""
    give_back_freed_memory()
    base, found, stop = resident().anonymous, [0], threading.Event()

    def look() -> None:
        while not stop.wait(INTERVAL):
            found[0] = max(found[0], resident().anonymous - base)

    watch = threading.Thread(target=look, name="distgnn-memory", daemon=True)
    watch.start()
    try:
        yield found
    finally:
        stop.set()
        watch.join()
