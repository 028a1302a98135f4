"""Mt-KaHyPar: the vertex cut as a hypergraph, whose vertices are the edges of the graph. A reference for copies.

A net joins the edges at one vertex of the graph; in how many parts a net lies is how many copies the vertex has, so
`km1`, the sum over nets of parts minus one, is what replication costs. Arcs are balanced to 3 %, as everywhere here;
it knows no balance of local rows (its largest part has up to twice the mean), and owned vertices are balanced
afterwards, which then costs copies. `--refine` goes on from its cut.

Shapes: M edges of the edge list, N vertices, P parts.
Source: Gottesbüren, Heuer, Maas, Sanders and Schlag, Scalable High-Quality Hypergraph Partitioning, ACM TALG 2024;
the reduction: Schlag et al., Scalable Edge Partitioning, ALENEX'19.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from distgnn.errors import InputError
from distgnn.kernels.runtime.threads import get_num_threads
from distgnn.partition.core.edges import Edges, group

BALANCE = 0.03
CHILD = """
import sys
import mtkahypar
import numpy as np
folder, parts, seed, threads = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
pins, starts, weights, most = (np.load(f"{folder}/{name}.npy") for name in ("pins", "starts", "weights", "most"))
kahypar = mtkahypar.initialize(threads)
mtkahypar.set_seed(seed)
context = kahypar.context_from_preset(mtkahypar.PresetType.DEFAULT)
context.logging = False
context.set_partitioning_parameters(parts, float(sys.argv[5]), mtkahypar.Objective.KM1)
if len(set(most.tolist())) > 1:
    context.set_individual_target_block_weights(most.tolist())
nets = np.split(pins, starts[1:-1])
graph = kahypar.create_hypergraph(
    context, len(weights), len(nets), [net.tolist() for net in nets], weights.tolist(), [1] * len(nets)
)
np.save(f"{folder}/parts.npy", np.asarray(graph.partition(context).get_partition(), dtype=np.int16))
"""


def kahypar_parts(edge_list: Edges, shares: np.ndarray, seed: int = 0) -> np.ndarray:
    """Part [M] int16 of each edge, with few copies and arcs within 3 % of their shares.

    Args: shares: [P], see `part_shares`.
    Raises: InputError where Mt-KaHyPar is not installed, or finds no cut.
    Notes: with several threads the same seed may give another cut; memory about 200 bytes for each edge.
    """
    num_parts, size = len(shares), len(edge_list.src)
    if num_parts == 1 or size <= num_parts:
        return (np.arange(size) % num_parts).astype(np.int16)
    if find_spec("mtkahypar") is None:
        raise InputError("method kahypar needs Mt-KaHyPar: pip install mtkahypar")
    with tempfile.TemporaryDirectory(prefix="distgnn-kahypar-") as folder:
        loops = edge_list.src == edge_list.dst
        # Every edge lies in the nets of its two ends; a self-loop in one.
        edges = np.concatenate([np.arange(size), np.flatnonzero(~loops)])
        order, starts = group(np.concatenate([edge_list.src, edge_list.dst[~loops]]), edge_list.num_nodes)
        wide = np.diff(starts) > 1  # a net of one edge is never cut
        inside = np.repeat(wide, np.diff(starts))
        weights = np.where(loops, 1, 2) if edge_list.two_way else np.ones(size, dtype=np.int64)
        arrays = {
            "pins": edges[order][inside],
            "starts": np.concatenate([[0], np.cumsum(np.diff(starts)[wide])]),
            "weights": weights,
            "most": np.ceil((1 + BALANCE) * edge_list.num_arcs * shares).astype(np.int64),
        }
        for name, array in arrays.items():
            np.save(Path(folder) / f"{name}.npy", array)
        words = [folder, num_parts, seed % 2**31, get_num_threads(), BALANCE]
        # In a process of its own: it keeps threads, and ends the process where it gives up.
        command = [sys.executable, "-c", CHILD, *map(str, words)]
        answer = subprocess.run(command, capture_output=True, text=True, check=False)
        result = Path(folder) / "parts.npy"
        if answer.returncode or not result.is_file():
            lines = (answer.stderr or answer.stdout).strip().splitlines() or [f"exit code {answer.returncode}"]
            raise InputError(f"Mt-KaHyPar found no cut into {num_parts} parts ({lines[-1]}): choose another method")
        return np.load(result)
