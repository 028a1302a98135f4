"""What K-FAC sees of a step: sums of sparse and of constant rows, plans that aggregate first; what it cannot see."""

import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
import torch
from cut_graphs import dist_graph, random_graph, whole_graph

from distgnn.extras.kfac import recorder
from distgnn.extras.kfac.recorder import second_moment

sys.path.append(str(Path(__file__).parent))
from kfac_trainer import losses, make


def sparse_graph():
    data = random_graph(3, num_feats=40)
    values = np.array(data.feats)
    values[np.random.default_rng(0).random(values.shape) < 0.95] = 0
    data.feats = scipy.sparse.csr_matrix(values)
    return data


@pytest.mark.mpi(2)
@pytest.mark.parametrize("options", [{"feat_norm": "center"}, {"sparse_feats": False, "transform_first": False}])
def test_sparse_rows_and_plans_that_aggregate_first(comm, options):
    data = sparse_graph()
    many, one = make(dist_graph(data, comm, **options)), make(whole_graph(data, **options))
    np.testing.assert_allclose(losses(many), losses(one), rtol=1e-8)
    neigh, own = many.optimizer.weights[:2]
    shares_input = "feat_norm" in options  # multiplies first: x is the input of both, diagonal where it is sparse
    assert (neigh.use.input == own.use.input) == shares_input
    assert (neigh.use.output == own.use.output) != shares_input
    assert many.optimizer.factors[neigh.use.input].dim() == (1 if shares_input else 2)


@pytest.mark.parametrize("feat_norm", ["none", "row-l2,center"])
def test_squares_of_sparse_rows_are_those_of_dense_rows(feat_norm):
    graph = whole_graph(sparse_graph(), feat_norm=feat_norm)
    expected = graph.feats.dense().square().sum(0)
    torch.testing.assert_close(second_moment(graph, graph.feats), expected)


@pytest.mark.mpi(2)
def test_what_is_not_seen_is_said_once(comm):
    said: list[str] = []
    trainer = make(dist_graph(random_graph(1), comm), "gat", own={"say": said.append})
    trainer.fit()
    names = [f"convs.{layer}.attn_{end}" for layer in range(3) for end in "lr"]
    expected = [f"kfac: Adam moves {', '.join(names[:4])} and 2 more: their products are not seen"]
    assert said == (expected if comm.rank == 0 else [])
    seen = {trainer.optimizer._names[weight.number] for weight in trainer.optimizer.weights}
    assert seen == {f"convs.{layer}.fc.weight" for layer in range(3)}


def test_the_moment_of_constant_rows_is_made_once_and_anew_when_they_change(monkeypatch):
    made, real = [], recorder.second_moment
    monkeypatch.setattr(recorder, "second_moment", lambda graph, rows: made.append(rows.shape) or real(graph, rows))
    trainer = make(whole_graph(random_graph(1)), kfac_every=1)
    counts = []
    for epoch in range(3):
        if epoch == 2:
            trainer.graph.feats.mul_(2)
        made.clear()
        trainer.train_epoch(epoch)
        counts.append(len(made))
    assert counts == [9, 7, 9]
