"""METIS and Mt-KaHyPar, each in a process of its own: they keep threads, and end their process where they give up.

Shapes: M edges of the edge list, N vertices, P parts.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from scipy import sparse

from distgnn.errors import InputError
from distgnn.kernels.runtime.threads import get_num_threads
from distgnn.partition.core.edges import Edges, group

BALANCE = 0.03
METIS = """
import sys, warnings
import numpy as np
import pymetis
warnings.simplefilter("ignore")
folder, parts, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
xadj, adjncy = np.load(folder + "/indptr.npy"), np.load(folder + "/indices.npy")
options, more = pymetis.Options(), {}
options.seed = seed
shares = np.load(folder + "/shares.npy")
if (shares != shares[0]).any():
    more["tpwgts"] = shares.tolist()
if hasattr(pymetis, "CSRAdjacency"):
    found = pymetis.part_graph(parts, pymetis.CSRAdjacency(xadj, adjncy), options=options, **more)
else:
    found = pymetis.part_graph(parts, xadj=xadj, adjncy=adjncy, options=options, **more)
np.save(folder + "/found.npy", np.asarray(found[1], dtype=np.int32))
"""
KAHYPAR = """
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
np.save(f"{folder}/found.npy", np.asarray(graph.partition(context).get_partition(), dtype=np.int16))
"""


def metis_owners(edge_list: Edges, shares: np.ndarray, seed: int = 0) -> np.ndarray:
    """Owners [N] int32: parts with their shares of the vertices and few edges between them.

    Notes: parallel edges and self-loops are left out: METIS crashes on them.
    """
    num_parts = len(shares)
    if num_parts == 1:
        return np.zeros(edge_list.num_nodes, dtype=np.int32)
    shape = (edge_list.num_nodes, edge_list.num_nodes)
    proper = edge_list.src != edge_list.dst
    ends = (edge_list.src[proper], edge_list.dst[proper])
    upper = sparse.csr_matrix((np.ones(len(ends[0]), dtype=bool), ends), shape=shape)
    # METIS takes undirected graphs, each edge in both rows.
    graph = (upper + upper.T).tocsr()
    graph.sum_duplicates()
    arrays = {"indptr": graph.indptr.astype(np.int32), "indices": graph.indices.astype(np.int32), "shares": shares}
    return _found("METIS", METIS, arrays, num_parts, seed)


def kahypar_parts(edge_list: Edges, shares: np.ndarray, seed: int = 0) -> np.ndarray:
    """Part [M] int16 of each edge, with few copies and arcs within 3 % of their shares: a reference for copies.

    The vertices of its hypergraph are the edges of the graph, and a net joins those at one vertex. In how many parts a
    net lies is how many copies the vertex has, so `km1`, the sum over nets of parts minus one, is what replication
    costs. It knows no balance of local rows: owned vertices are balanced afterwards, which then costs copies.

    Args: shares: [P], see `part_shares`.
    Notes: with several threads the same seed may give another cut; memory about 200 bytes for each edge.
    Source: Gottesbüren, Heuer, Maas, Sanders and Schlag, Scalable High-Quality Hypergraph Partitioning, ACM TALG 2024;
        the reduction: Schlag et al., Scalable Edge Partitioning, ALENEX'19.
    """
    num_parts, size = len(shares), len(edge_list.src)
    if num_parts == 1 or size <= num_parts:
        return (np.arange(size) % num_parts).astype(np.int16)
    if find_spec("mtkahypar") is None:
        raise InputError("method kahypar needs Mt-KaHyPar: pip install mtkahypar")
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
    return _found("Mt-KaHyPar", KAHYPAR, arrays, num_parts, seed, get_num_threads(), BALANCE)


def _found(
    name: str, program: str, arrays: dict[str, np.ndarray], num_parts: int, seed: int, *more: float
) -> np.ndarray:
    """What a program finds, given a folder with these arrays, the number of parts, the seed and more."""
    with tempfile.TemporaryDirectory(prefix="distgnn-cut-") as folder:
        for file, array in arrays.items():
            np.save(Path(folder) / f"{file}.npy", array)
        command = [sys.executable, "-c", program, folder, *map(str, (num_parts, seed % 2**31, *more))]
        answer = subprocess.run(command, capture_output=True, text=True, check=False)
        result = Path(folder) / "found.npy"
        if answer.returncode or not result.is_file():
            lines = (answer.stderr or answer.stdout).strip().splitlines() or [f"exit code {answer.returncode}"]
            raise InputError(f"{name} found no cut into {num_parts} parts ({lines[-1]}): choose another method")
        return np.load(result)
