"""Every task: P ranks learn what one rank learns, and what a resumed run learns."""

import numpy as np
import pytest
import torch
from cut_graphs import dist_graph, random_graph, whole_graph
from resumed import numbers
from torch import nn
from trainers import trainer_of

from distgnn.config import ModelConfig, TrainConfig
from distgnn.errors import InputError
from distgnn.graph.edge_pairs import negative_edges
from distgnn.graph.face.row_graph import with_rows
from distgnn.nn import GraphSAGE, model_for
from distgnn.train import Trainer
from distgnn.train.tasks import task_for, values_of
from distgnn.train.users_model import check_trainable

EXACT = {"rtol": 1e-10, "atol": 1e-12}  # float64 sums in another order


def graph_for(task: str):
    """A graph with what any task needs; metrics of links with negatives for each edge, or for all."""
    random = np.random.default_rng(5)
    data = random_graph(9, directed=task == "edge")
    if task in ("regression", "node"):
        data.node_values = random.standard_normal((data.num_nodes, 2))
        data.node_values[:3] = np.nan
        return data.check()
    if task.startswith("link"):
        data = data.split_links(0.1, 0.2, seed=2)
        if task == "link, beside":
            data.test_negative_targets = random.integers(0, data.num_nodes, (len(data.test_edges), 4))
        return data
    for split, ids in zip(("train", "valid", "test"), np.split(random.permutation(200), [120, 150]), strict=True):
        setattr(data, f"{split}_edges", data.edges[ids])
        labels = random.integers(0, 3, len(ids)) if task == "edge" else random.random(len(ids))
        setattr(data, f"{split}_edge_labels", labels)
    return data.check()


CASES = {
    "regression": {},
    "regression, mae": {"loss": "mae", "metric": "mse"},
    "edge": {"label_smoothing": 0.2},
    "edge-regression": {},
    "link": {"metric": "hits@3"},
    "link, beside": {"num_negatives": 3, "negatives": "source"},
    "link, mlp": {"metric": "rocauc"},
}


def trainer_for(graph, case: str, **config) -> Trainer:
    sizes = ModelConfig(hidden_feats=8, num_layers=2, decoder="mlp" if case == "link, mlp" else None)
    usual = {"task": case.partition(",")[0], "epochs": 6, "lr": 0.01, "eval_every": 2}
    return trainer_of(graph, sizes, **usual | CASES[case] | config)


def predictions(trainer: Trainer, graph) -> np.ndarray:
    ids, rows, count = trainer.task.predict(graph, trainer.predict())
    everything = np.full((count, *rows.shape[1:]), np.nan)
    for places, theirs in graph.comm.allgather((ids, rows.detach().numpy())):
        everything[places] = theirs
    return everything


@pytest.mark.mpi(3)
@pytest.mark.parametrize("case", CASES)
def test_ranks_change_nothing(comm, case):
    data = graph_for(case if case == "link, beside" else case.partition(",")[0])
    graphs = dist_graph(data, comm), whole_graph(data)
    many, one = (trainer_for(graph, case) for graph in graphs)
    results = [trainer.fit() for trainer in (many, one)]
    for found, expected in zip(*(result.records for result in results), strict=True):
        np.testing.assert_allclose(found["loss"], expected["loss"], **EXACT)
        metrics = {name for name in expected if name.startswith(("train_", "valid_", "test_"))}
        assert metrics == {name for name in found if name.startswith(("train_", "valid_", "test_"))}
        for name in metrics:
            same = found[name] is expected[name] or found[name] == pytest.approx(expected[name], rel=1e-10)
            assert same, name
    assert results[0].losses[-1] < results[0].losses[0]
    assert results[0].summary["valid_metric"] is not None
    np.testing.assert_allclose(*(predictions(*pair) for pair in zip((many, one), graphs, strict=True)), 1e-8, 1e-10)


@pytest.mark.mpi(2)
@pytest.mark.parametrize(("case", "late"), [("regression", {}), ("link", {}), ("link", {"algorithm": "cd-2"})])
def test_a_resumed_run_is_bit_identical(comm, shared_tmp_path, case, late):
    def trainer(data=None, **config) -> Trainer:  # held rows of late runs belong to a graph: each has its own
        return trainer_for(dist_graph(data or graph_for(case), comm, **late), case, **config)

    whole = trainer(run_dir=str(shared_tmp_path / "whole")).fit()
    run = {"run_dir": str(shared_tmp_path / "run")}
    trainer(**run | {"epochs": 3}).fit()
    resumed = trainer(**run | {"resume": True}).fit()
    assert numbers(resumed.records)[3:] == numbers(whole.records)[3:]
    with pytest.raises(InputError, match=r"lr is 0\.01 there, 0\.5 here"):
        trainer(**run | {"resume": True, "lr": 0.5}).fit()
    if case == "link":
        with pytest.raises(InputError, match="num_negatives is not set there, 2 here"):
            trainer(**run | {"resume": True, "num_negatives": 2}).fit()
        other = graph_for("link")
        other.test_edges[0] = other.test_edges[0, ::-1]
        with pytest.raises(InputError, match="its edge splits are different"):
            trainer(other, **run | {"resume": True}).fit()


def test_classes_of_edges_are_smoothed_as_torch_does():
    graph = whole_graph(graph_for("edge"))
    model = model_for(ModelConfig(hidden_feats=8, num_layers=2), graph, "edge").double().eval()
    task, rows = task_for(TrainConfig(task="edge", label_smoothing=0.2), model, graph), model(graph, graph.feats)
    pairs, scores = task._scores(graph, rows, "train")
    expected = nn.functional.cross_entropy(scores, pairs.labels, label_smoothing=0.2)
    assert task.loss(graph, rows).item() == pytest.approx(expected.item(), rel=1e-12)


@pytest.mark.mpi(2)
@pytest.mark.parametrize("number", [1, 3])
def test_the_loss_of_links_is_torchs_binary_cross_entropy(comm, number):
    graph = dist_graph(graph_for("link"), comm)
    model = model_for(ModelConfig(hidden_feats=8, num_layers=2, dropout=0), graph, "link").double()
    rows = model(graph, graph.feats)
    config, graph.step = TrainConfig(task="link", num_negatives=number), 0
    found = comm.allreduce(task_for(config, model, graph).loss(graph, rows).item())
    pairs, graph.step = graph.edge_pairs("train"), 0  # the same draw again
    whole, means = torch.from_numpy(graph.gather_rows(rows.detach(), root=None)), []
    for drawn, truth in ((pairs.pairs, 1.0), (negative_edges(graph, pairs, number, "uniform"), 0.0)):
        ends = torch.from_numpy(np.concatenate(comm.allgather(drawn)))
        scores = (whole[ends[:, 0]] * whole[ends[:, 1]]).sum(1)
        means.append(nn.functional.binary_cross_entropy_with_logits(scores, torch.full_like(scores, truth)).item())
    assert found == pytest.approx(sum(means), rel=1e-9)  # torch takes softplus(x) as x beyond 20


@pytest.mark.mpi(1)
def test_the_lowest_error_is_the_best_epoch(comm):
    trainer = trainer_for(dist_graph(graph_for("regression"), comm), "regression", lr=3.0)
    result = trainer.fit()
    evaluated = {one["epoch"]: one["valid_metric"] for one in result.records if "valid_metric" in one}
    assert len(set(evaluated.values())) == 3
    assert result.summary["best_epoch"] == min(evaluated, key=evaluated.__getitem__)
    assert result.summary["valid_mse"] == result.summary["valid_metric"] == min(evaluated.values())


@pytest.mark.mpi(2)
def test_a_loss_of_ones_own_gets_the_rows(comm):
    graph = dist_graph(graph_for("regression"), comm)
    known = graph.train_mask & ~graph.node_values.isnan().any(1)

    def own(graph, rows):
        return graph.global_mean((rows - graph.node_values)[known].square())

    sizes, config = ModelConfig(hidden_feats=8, dropout=0), {"task": "regression", "epochs": 3, "eval_every": 3}
    theirs, ours = (trainer_of(graph, sizes, more, **config).fit().losses for more in ({"loss": own}, {}))
    np.testing.assert_allclose(theirs, ours, **EXACT)


@pytest.mark.mpi(2)
@pytest.mark.parametrize(
    ("task", "of", "says"),
    [
        ("regression", "link", "task regression needs values of vertices"),
        ("link", "node", "task link needs a split of edges"),
        ("edge", "link", "needs labels of edges that are whole numbers .*: this partition has none"),
        ("edge", "edge-regression", "this partition has floats"),
        ("edge-regression", "edge", "this partition has whole numbers"),
        ("link", "edge", "task link predicts edges"),
    ],
)
def test_graphs_without_what_a_task_predicts(comm, task, of, says):
    data = graph_for(of)
    data.labels = data.labels if of == "node" else None
    graph = dist_graph(data, comm)
    with pytest.raises(InputError, match=says):
        model_for(ModelConfig(hidden_feats=8), graph, task)
    config = TrainConfig(task=task)
    model = nn.Module()
    model.scores = print
    with pytest.raises(InputError, match=says):
        check_trainable(model, graph, config, None)


@pytest.mark.mpi(1)
def test_a_model_without_scores_of_pairs(comm):
    graph = dist_graph(graph_for("link"), comm)
    with pytest.raises(InputError, match=r"needs a model with scores of pairs: dg\.nn\.PairPredictor"):
        Trainer(GraphSAGE(graph.num_feats, 8, 8), graph, TrainConfig(task="link"))


@pytest.mark.mpi(2)
@pytest.mark.parametrize("shape", [(60,), (60, 1), (60, 2)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_values_keep_their_shape(comm, shape, dtype):
    """A script's loss is torch's on whole tensors, and predictions have the shape of the values."""
    data = random_graph(9)
    data.labels, data.node_values = None, np.random.default_rng(5).standard_normal(shape).astype(np.float32)
    graph = with_rows(dist_graph(data.check(), comm, dtype=dtype))
    assert tuple(graph.y.shape) == shape and graph.y.dtype == graph.plain.weight_dtype
    weights = torch.linspace(-1, 1, graph.num_feats * (shape[1:] or (1,))[0]).view(graph.num_feats, -1)
    whole = (torch.tensor(data.feats) @ weights).reshape(shape), torch.tensor(data.node_values)
    mine = (graph.feats.float() @ weights).reshape(shape), graph.y.float()
    losses = [float(torch.nn.functional.mse_loss(*pair)) for pair in (mine, whole)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-6 if dtype != "bfloat16" else 1e-2)  # rows of 8 bits
    for rows in (
        torch.ones(graph.plain.num_owned, *shape[1:]),
        torch.ones(graph.plain.num_owned, *(shape[1:] or (1,))),
    ):
        task = task_for(TrainConfig(task="regression"), nn.Identity(), graph.plain)
        assert tuple(task.predict(graph.plain, rows)[1].shape[1:]) == shape[1:]
        assert task.loss(graph.plain, rows).isfinite()


@pytest.mark.mpi(2)
def test_whole_numbers_are_values_where_they_are_asked_for(comm):
    """Of a folder of parts as well, which has them as classes: by the names of those whose gaps were closed."""
    data, ages = random_graph(9), np.array([18, 25, 31, 44, 60, 71])[np.arange(60) % 6]
    data.labels, data.class_names = np.arange(60) % 6, ("18", "25", "31", "44", "60", "71")
    data.labels[0] = -1
    graph = dist_graph(data.check(), comm)
    values = values_of(graph)[:, 0].numpy()
    here = graph.owned_ids
    np.testing.assert_array_equal(values, np.where(here == 0, np.nan, ages[here]))
    trainer = trainer_for(graph, "regression")
    assert trainer.fit().losses[0] > 100
    data.class_names = ("a", "b", "c", "d", "e", "f")
    with pytest.raises(InputError, match="task regression needs numbers: the labels of this graph are texts, as 'a'"):
        trainer_for(dist_graph(data, comm), "regression")
