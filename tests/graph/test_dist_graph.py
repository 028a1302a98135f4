"""Public objects print as one line."""

import pytest
import torch
from cut_graphs import dist_graph, random_cut, random_graph

from distgnn.config import TrainConfig
from distgnn.errors import InputError, RunError
from distgnn.graph.dist_graph import dtype_name
from distgnn.graph.loader import check_rank_count
from distgnn.nn import GraphSAGE
from distgnn.partition import PartitionBook, build_local
from distgnn.train import Trainer, TrainResult


def test_of_a_cut():
    edges = random_graph().edge_list()
    cut = random_cut(edges, 2)
    assert repr(cut).startswith(f"VertexCut(num_parts=2, num_edges={len(edges.src)}, num_nodes=60")
    book = PartitionBook(edges, cut)
    assert repr(book).startswith("PartitionBook(num_parts=2, num_nodes=60, num_arcs=")
    local = build_local(book, 1)
    assert repr(local).startswith(f"LocalGraph(part 1 of 2, num_owned={local.num_owned}, num_halos=")
    assert repr(local.plan).startswith(f"ExchangePlan(part 1 of 2, num_owned={local.num_owned}, broadcast sends ")
    assert "\n" not in repr(cut) + repr(book) + repr(local) + repr(local.plan)


@pytest.mark.mpi(2)
def test_of_a_graph_and_a_result(comm):
    graph = dist_graph(random_graph(), comm, dtype=torch.float64)
    assert graph.dtype is torch.float64
    assert repr(graph) == (
        f"DistGraph(part {comm.rank} of {comm.size}, num_nodes={graph.num_owned} of 60, num_feats=8, num_classes=4, "
        "dtype=torch.float64, algorithm='cd-0', update='owners')"
    )
    result = Trainer(GraphSAGE(8, 4, 4), graph, TrainConfig(epochs=2)).fit()
    assert repr(result).startswith("TrainResult(epochs=2, loss=") and "test accuracy=0." in repr(result)


def test_of_an_empty_result():
    assert repr(TrainResult()) == "TrainResult(epochs=0)"


def test_dtypes_by_name_and_of_torch():
    assert [dtype_name(one) for one in ("float64", torch.float64, torch.bfloat16)] == ["float64", "float64", "bfloat16"]
    with pytest.raises(InputError, match="unknown dtype 'int64'"):
        dtype_name(torch.int64)


def test_a_plain_process_is_told_how_to_start_ranks(monkeypatch):
    for name in ("PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(RunError, match=r"start a script with `distgnn run -n 3 SCRIPT\.py`; in a notebook"):
        check_rank_count("parts", 3, 1)
    with pytest.raises(RunError, match="3 parts but 2 ranks"):
        check_rank_count("parts", 3, 2)
    check_rank_count("parts", 3, 3)
