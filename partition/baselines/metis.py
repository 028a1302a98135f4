"""METIS through pymetis: owners by an edge cut, in a process of its own, because METIS may take it down."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from scipy import sparse

from distgnn.errors import InputError
from distgnn.partition.core.edges import Edges

CHILD = """
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
np.save(folder + "/owner.npy", np.asarray(found[1], dtype=np.int32))
"""


def metis_owners(edge_list: Edges, shares: np.ndarray, seed: int = 0) -> np.ndarray:
    """Owners [N] int32: parts with their shares of the vertices and few edges between them.

    Raises: InputError if METIS is not installed or gives up.
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
    with tempfile.TemporaryDirectory(prefix="distgnn-metis-") as folder:
        np.save(Path(folder) / "indptr.npy", graph.indptr.astype(np.int32))
        np.save(Path(folder) / "indices.npy", graph.indices.astype(np.int32))
        np.save(Path(folder) / "shares.npy", shares)
        # METIS aborts its process on some graphs: then this one lives on and says so.
        command = [sys.executable, "-c", CHILD, folder, str(num_parts), str(seed % 2**31)]
        answer = subprocess.run(command, capture_output=True, text=True, check=False)
        result = Path(folder) / "owner.npy"
        if answer.returncode or not result.is_file():
            lines = (answer.stderr or answer.stdout).strip().splitlines() or [f"exit code {answer.returncode}"]
            raise InputError(f"METIS found no cut into {num_parts} parts ({lines[-1]}): choose another method")
        return np.load(result)
