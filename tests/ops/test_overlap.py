"""Work that an aggregation does while its messages travel: all of it, once, and training as without it."""

import numpy as np
import pytest
import torch
from cut_graphs import dist_graph, random_graph

from distgnn.config import ModelConfig, TrainConfig
from distgnn.graph.training_exchanges import TrainingExchanges
from distgnn.kernels import Tuning
from distgnn.nn import build_model
from distgnn.ops.buffers import Buffers
from distgnn.ops.rowwise.products import LEAST_ROWS, NUM_PIECES, product_pieces
from distgnn.train import Trainer


@pytest.mark.parametrize("num_rows", [0, 1, LEAST_ROWS, LEAST_ROWS * NUM_PIECES + 7])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_pieces_make_the_product(num_rows, dtype):
    graph = type("Graph", (), {"buffers": Buffers(), "tuning": Tuning()})
    rows, weight = torch.randn(num_rows, 4).to(dtype), torch.randn(8, 4).T
    out = torch.full((num_rows, 8), torch.nan, dtype=dtype)
    work = product_pieces(graph, rows, weight, out)
    assert len(work) <= NUM_PIECES
    for piece in work:
        piece()
    torch.testing.assert_close(out, rows @ weight.to(dtype))


@pytest.mark.mpi(2)
@pytest.mark.parametrize("options", [{}, {"algorithm": "cd-2", "wire": "int8"}], ids=["exact", "late"])
def test_an_aggregation_does_it_once(comm, options):
    graph = dist_graph(random_graph(3), comm, dtype="float32", **options)
    done = []
    work = [lambda number=number: done.append(number) for number in range(5)]
    rows = np.ones((graph.num_owned, 8), np.float32)
    plain, _ = graph.forward_arcs(rows)
    found, _ = graph.forward_arcs(rows, overlap_work=work)
    np.testing.assert_array_equal(found, plain)
    assert done == list(range(5))
    graph.drain()


@pytest.mark.mpi(3)
@pytest.mark.parametrize("wire", ["float32", "int8"])
def test_training_is_the_same_with_and_without(comm, monkeypatch, wire):
    """The sums are the same; in what order they are added differs, so float64 where the wire allows it."""
    dtype = "float64" if wire == "float32" else "float32"
    losses = []
    for waits in (True, False):
        graph = dist_graph(random_graph(1), comm, dtype=dtype, wire=wire)
        assert graph.waits_for_rows
        monkeypatch.setattr(TrainingExchanges, "waits_for_rows", waits)
        torch.manual_seed(0)
        model = build_model(ModelConfig(hidden_feats=8), graph.num_feats, graph.num_classes)
        losses.append(Trainer(model, graph, TrainConfig(epochs=5)).fit().losses)
        monkeypatch.undo()
    tolerance = 1e-12 if dtype == "float64" else 1e-2  # int8 rounds what differs in the last bit one step apart
    np.testing.assert_allclose(*losses, rtol=tolerance)
