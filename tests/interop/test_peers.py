"""Scripts of one process on ranks: a share of tests/bench/peers, which runs all of them beside the plain library."""

import random
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import distgnn as dg
from distgnn.errors import DistGNNError

pytest.importorskip("torch_geometric.nn")
sys.path.insert(0, str(Path(__file__).parents[1] / "bench" / "peers"))

from cases import load_cases
from peer import Peer, difference
from worlds import WORLDS, ids_of, plain_graph, write_parts

CASES = load_cases()
EQUAL = [
    *("statistics of rows: batch norm", "statistics of rows: kl of VGAE"),
    *("norms on some rows: batch norm of the masked", "norms on some rows: masked twice"),
    *("rows x rows: transposed product", "rows x rows: barlow twins", "losses: two losses"),
    *("losses: cross entropy of ids", "losses: cross entropy ignores", "losses: focal by hand"),
    *("global ids: train ids", "global ids: pair labels", "global ids: permuted rows"),
    *("order of rows: stack in front and max", "order of rows: tensor of N rows"),
    *("changes in place: set a mask", "pyg: SAGEConv, table"),
    *("habits of Data: called with names", "habits of Data: an accuracy as PyG's examples have it"),
    *("script: pyg gcn", "script: pyg sage split", "script: pyg gae", "script: dgl gcn"),
]
REFUSED = ["rows x rows: gram matrix", "order of rows: sort over rows", "order of rows: median of all"]


@pytest.fixture(autouse=True)
def float64():
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(before)


def run(name: str, graph, data, package=None, folder: str = "") -> dict:
    for seed in (torch.manual_seed, np.random.seed, random.seed):
        seed(0)
    peer = Peer(CASES[name].library, graph, ids_of(data), package, folder)
    return peer.arrays(CASES[name].run(peer))


@pytest.fixture(scope="module")
def kept() -> dict[int, Path]:
    return {}


@pytest.fixture
def parts(comm, kept, tmp_path_factory) -> Path:
    """All worlds in as many parts as there are ranks: cut once."""
    if comm.size not in kept:
        kept[comm.size] = comm.bcast(tmp_path_factory.mktemp("worlds"))
        if comm.rank == 0:
            write_parts(kept[comm.size], comm.size)
        comm.barrier()
    return kept[comm.size]


def load(name: str, parts: Path, comm):
    folder = parts / f"{CASES[name].world}-{comm.size}"
    return dg.load(folder, comm=comm, dtype="float64", say=None), str(folder)


@pytest.mark.mpi(3)
@pytest.mark.parametrize("name", EQUAL)
def test_a_script_gives_the_numbers_of_the_plain_library(comm, parts, name):
    data = WORLDS[CASES[name].world]()
    graph, folder = load(name, parts, comm)
    found = run(name, graph, data, dg, folder)
    assert difference(found, run(name, plain_graph(data, CASES[name].library), data)) == ""


@pytest.mark.mpi(2)
@pytest.mark.parametrize("name", REFUSED)
def test_what_needs_all_rows_in_one_place_is_refused_in_one_line(comm, parts, name):
    graph, folder = load(name, parts, comm)
    with pytest.raises(DistGNNError) as refused:
        run(name, graph, WORLDS[CASES[name].world](), dg, folder)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.changed is not None])
def test_a_script_changes_at_most_five_lines(name):
    assert 0 < CASES[name].changed <= 5


NEED_A_GPU = {"CuGraphSAGEConv", "CuGraphGATConv", "CuGraphRGCNConv", "FusedGATConv"}


def test_every_convolution_and_norm_of_pyg_is_among_the_cases():
    from torch_geometric.nn import conv, norm

    layers = {f"pyg: {name}" for name in {*conv.__all__} - NEED_A_GPU - {"MessagePassing"}}
    layers |= {f"pyg: norm {name}" for name in norm.__all__}
    assert {name for name in layers if not any(case.startswith(name) for case in CASES)} == set()
