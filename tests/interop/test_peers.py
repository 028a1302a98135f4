"""Scripts of one process on ranks: a share of tests/bench/peers, which runs all of them beside the plain library."""

import random
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import distgnn as dg
from distgnn.interop.table import tried

pytest.importorskip("torch_geometric.nn")
sys.path.insert(0, str(Path(__file__).parents[1] / "bench" / "peers"))

from cases import load_cases
from peer import Peer, difference, failure
from worlds import WORLDS, ids_of, plain_graph, write_parts

CASES = load_cases()
EQUAL = [
    *("norms on some rows: batch norm of the masked", "norms on some rows: masked twice", "pyg: SAGEConv, table"),
    *("habits of Data: called with names", "habits of Data: an accuracy as PyG's examples have it"),
    *("script: pyg gcn", "script: pyg sage split", "script: pyg gae", "script: dgl gcn"),
    *("loop: pyg early stopping with the best state", "loop: pyg bootstrapped views with a moving target"),
    *("loop: pyg labels propagated then reused as features", "loop: dgl predictions corrected and smoothed"),
    *("dgl: own softmax, ids", "dgl: own functions, table", "dgl: own edges, mask", "dgl: GATConv, in place"),
    *("pyg: GCNConv, in place", "tables of vertices: embedding of arange, Adam", "pyg: norm BatchNorm, whole"),
    *("pyg: norm GraphNorm, mask", "pyg: norm PairNorm individually, ids", "pyg: norm InstanceNorm statistics, whole"),
    *("pyg: norm LayerNorm graph, whole", "pyg: norm LayerNorm node, whole", "pyg: norm MeanSubtractionNorm, whole"),
    *("pyg: norm GraphSizeNorm, whole", "pyg: norm DiffGroupNorm, whole", "functions of PyG: homophily"),
    *("functions of PyG: homophily of nodes", "functions of PyG: contains_self_loops"),
]
WHOLE_KINDS = [  # a few milliseconds a case
    *("statistics of rows", "rows x rows", "order of rows", "losses", "elementwise and columns", "global ids"),
    *("changes in place", "torch's modes"),
]


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


@pytest.mark.mpi(1, 3)
@pytest.mark.filterwarnings("ignore")  # torch's, of the plain library too
@pytest.mark.parametrize("kind", WHOLE_KINDS)
def test_cases_are_equal_or_refused_as_the_page_of_layers_says(comm, parts, kind):
    counts, graph = {"equal": 0, "refused": 0}, None
    for name in [name for name, case in CASES.items() if case.kind == kind]:
        data = WORLDS[CASES[name].world]()
        try:
            expected = run(name, plain_graph(data, CASES[name].library), data)
        except Exception:
            continue  # the plain library fails, too
        graph = graph if graph and graph[0] == CASES[name].world else (CASES[name].world, load(name, parts, comm)[0])
        try:
            found = run(name, graph[1].clone(), data, dg)
        except Exception as error:
            assert failure(error)[0] == "refused", name
            counts["refused"] += 1
            graph = None  # it may have stopped half-way
        else:
            assert difference(found, expected) == "", name
            counts["equal"] += 1
    _, equal, refused, on_one = next(row for row in tried()[0] if row[0] == kind)
    assert list(counts.values()) == ([equal, refused] if comm.size > 1 else [equal + on_one, refused - on_one])


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.changed is not None])
def test_a_script_changes_at_most_five_lines(name):
    assert 0 < CASES[name].changed <= 5


NEED_MORE = {"CuGraphSAGEConv", "CuGraphGATConv", "CuGraphRGCNConv", "FusedGATConv"}  # a GPU
NEED_MORE |= {"GravNetConv", "SplineConv", "DynamicEdgeConv", "XConv", "PANConv"}  # compiled extras of PyG


def test_every_convolution_and_norm_of_pyg_is_among_the_cases():
    from torch_geometric.nn import conv, norm

    layers = {f"pyg: {name}" for name in {*conv.__all__} - NEED_MORE - {"MessagePassing"}}
    layers |= {f"pyg: norm {name}" for name in norm.__all__}
    assert {name for name in layers if not any(case.startswith(name) for case in CASES)} == set()
