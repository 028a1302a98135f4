"""P ranks compute what one rank computes: losses with dropout, layer norm and Adam; predictions in original order."""

import numpy as np
import pytest
from cut_graphs import dist_graph, gather_rows, on_rank_0, random_cut, random_graph, whole_graph
from trainers import trainer_of

from distgnn.config import ModelConfig
from distgnn.datasets import GraphData
from distgnn.partition import VertexCut, cut_edges

LOSS_TOLERANCE = {"float64": 1e-10, "float32": 2e-5}


def train(graph, model: str, epochs: int):
    sizes = ModelConfig(model, 8, weighted=graph.edge_weight is not None)
    trainer = trainer_of(graph, sizes, epochs=epochs, eval_every=10, lr=0.01)
    result = trainer.fit()
    return result, gather_rows(graph, trainer.predict())


def same_run(comm, data, cut, dtype: str, model: str = "sage", epochs: int = 30, **options):
    """Train on all ranks and alone; compare losses and logits."""
    many, logits = train(dist_graph(data, comm, cut, dtype=dtype, **options), model, epochs)
    one, expected = on_rank_0(comm, lambda: train(whole_graph(data, dtype=dtype, **options), model, epochs))
    np.testing.assert_allclose(many.losses, one.losses, rtol=LOSS_TOLERANCE[dtype])
    return many, one, logits, expected


@pytest.mark.mpi(3)
@pytest.mark.parametrize("dtype", LOSS_TOLERANCE)
def test_dropout_and_layer_norm(comm, graph_named, dtype):
    data = graph_named("communities")
    cut = cut_edges(data.edge_list(), comm.size, "libra")
    many, one, logits, expected = same_run(comm, data, cut, dtype)
    assert many.losses[-1] < 0.5 * many.losses[0]
    if dtype == "float64":
        np.testing.assert_allclose(logits, expected, rtol=1e-7, atol=1e-8)  # 30 Adam steps on 1e-10 relative losses
        assert many.summary["test_metric"] == one.summary["test_metric"]


@pytest.mark.mpi(3)
@pytest.mark.parametrize("model", ["sage", "gcn"])
@pytest.mark.parametrize("kind", ["multilabel", "split arcs", "weighted", "directed"])
def test_kinds_of_graphs_and_cuts(comm, model, kind):
    data = random_graph(20, directed=kind == "directed", weighted=kind == "weighted", multilabel=kind == "multilabel")
    cut = random_cut(data.edge_list(), comm.size, split_arcs=kind == "split arcs")
    same_run(comm, data, cut, "float64", model, epochs=5)


@pytest.mark.mpi(3)
@pytest.mark.parametrize("lacks", ["training vertices", "vertices and arcs"])
def test_a_rank_without_something(comm, lacks):
    data = random_graph(21)
    cut = random_cut(data.edge_list(), comm.size)
    if lacks == "training vertices":
        cut.owner[data.train] = 0
    else:
        cut.owner[:], cut.edge_part[:] = 0, 0
    same_run(comm, data, cut, "float64", epochs=5)


@pytest.mark.mpi(3)
def test_no_rank_has_a_halo(comm):
    rings = [np.stack([np.arange(9), np.roll(np.arange(9), 1)], axis=1) + 9 * ring for ring in range(5)]
    random = np.random.default_rng(3)
    feats, labels = random.standard_normal((45, 8)).astype(np.float32), random.integers(0, 4, 45)
    data = GraphData.from_arrays(
        np.concatenate(rings), 45, directed=False, feats=feats, labels=labels, train=np.arange(0, 45, 2)
    )
    owner = np.arange(45) // 9 % comm.size
    cut = VertexCut(comm.size, owner[data.edge_list().src], owner)
    many, *_ = same_run(comm, data, cut, "float64", epochs=5)
    assert many.summary["sent_bytes_per_epoch"] == 0


@pytest.mark.mpi(3)
def test_more_parts_than_a_component_has_vertices(comm):
    edges = np.array([[0, 1], [2, 3], [4, 5], [6, 6], [7, 8]])
    random = np.random.default_rng(0)
    feats, labels = random.standard_normal((10, 8)).astype(np.float32), random.integers(0, 4, 10)
    data = GraphData.from_arrays(edges, 10, directed=False, feats=feats, labels=labels, train=np.arange(8), test=[8, 9])
    same_run(comm, data, random_cut(data.edge_list(), comm.size), "float64", epochs=5)
