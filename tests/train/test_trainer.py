"""The training loop: optimiser, schedules, stopping, best weights, warnings and refusals."""

import json
from functools import partial

import pytest
import torch
from cut_graphs import dist_graph, random_graph

from distgnn.config import ModelConfig, TrainConfig
from distgnn.datasets import GraphData
from distgnn.errors import InputError, RunError
from distgnn.nn import build_model
from distgnn.train import Trainer, load_best
from distgnn.train.lr_schedule import EarlyStopping
from distgnn.train.steps.own_optimizers import SGD, Adam, AdamW
from distgnn.train.trainable import check_forward


def make(graph, **config) -> Trainer:
    torch.manual_seed(0)
    model = build_model(ModelConfig(hidden_feats=8), graph.num_feats, graph.num_classes)
    return Trainer(model, graph, TrainConfig(**{"epochs": 6, "eval_every": 2} | config))


@pytest.mark.parametrize(
    ("own", "torchs"),
    [
        (Adam, torch.optim.Adam),
        (AdamW, torch.optim.AdamW),
        (SGD, partial(torch.optim.SGD, momentum=0.9)),
    ],
)
def test_an_optimizer_is_torchs(own, torchs):
    torch.manual_seed(0)
    mine = [torch.nn.Parameter(torch.randn(3, 4)), torch.nn.Parameter(torch.randn(5))]
    theirs = [torch.nn.Parameter(parameter.detach().clone()) for parameter in mine]
    ours, reference = own(mine, 0.01, 0.1), torchs(theirs, lr=0.01, weight_decay=0.1, foreach=False)
    for _ in range(5):
        for one, other in zip(mine, theirs, strict=True):
            one.grad = torch.randn_like(one)
            other.grad = one.grad.clone()
        ours.step()
        reference.step()
    for one, other in zip(mine, theirs, strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize("stopped_after", range(1, 29, 3))
def test_stopping_goes_on_where_a_checkpoint_was_written(stopped_after):
    values = [0.1, 0.5] + [0.4] * 5 + [0.6] + [0.5] * 20

    def go_on(stopping: EarlyStopping, epochs) -> list[tuple[bool, bool]]:
        return [(stopping.is_best(epoch, values[epoch]), stopping.should_stop()) for epoch in epochs]

    whole = go_on(EarlyStopping(7), range(28))
    first, second = EarlyStopping(7), EarlyStopping(7)
    go_on(first, range(stopped_after))
    second.load_state(json.loads(json.dumps(first.state())))
    assert go_on(second, range(stopped_after, 28)) == whole[stopped_after:]


def test_early_stopping_counts_evaluations():
    stopping = EarlyStopping(patience=2)
    values = [0.5, 0.8, 0.6, 0.7, 0.69, 0.6]  # means of three: 0.5, 0.65, 0.63, 0.7, 0.66, 0.66
    found = [(stopping.is_best(epoch, value), stopping.should_stop()) for epoch, value in enumerate(values)]
    assert [best for best, _ in found] == [True, True, False, False, False, False]
    assert [stop for _, stop in found] == [False] * 5 + [True]  # the single value of epoch 1 does not count
    assert stopping.best_epoch == 1
    still = EarlyStopping(patience=2)  # a tie is not better
    assert [still.is_best(epoch, 0.5) or still.should_stop() for epoch in range(3)] == [True, False, True]
    assert still.best_epoch == 0


@pytest.mark.mpi(1, 3)
def test_it_stops_early_on_all_ranks_and_ends_with_the_best_weights(comm):
    trainer = make(dist_graph(random_graph(1), comm), epochs=200, eval_every=1, patience=3, lr=0.05)
    weights = []  # of each epoch, on rank 0
    trainer.on_epoch = lambda record: weights.append(
        {name: tensor.clone() for name, tensor in trainer.model.state_dict().items()}
    )
    result = trainer.fit()
    assert len(result.records) < 200
    best = max(result.records, key=lambda record: (record["valid_metric"], -record["epoch"]))
    assert result.summary["best_epoch"] == best["epoch"]
    assert result.summary["valid_metric"] == best["valid_metric"]
    assert comm.allgather(result.losses) == [result.losses] * comm.size
    assert trainer.evaluate()["valid_metric"] == best["valid_metric"]
    if comm.rank == 0:
        at_best, last = weights[best["epoch"]], weights[-1]
        for name, tensor in trainer.model.state_dict().items():
            assert torch.equal(tensor, at_best[name])
        assert any(not torch.equal(last[name], at_best[name]) for name in last)


@pytest.mark.mpi(1)
def test_predictions_are_made_without_dropout(comm):
    trainer = make(dist_graph(random_graph(1), comm))
    assert any(getattr(module, "p", 0) for module in trainer.model.modules())
    trainer.train_epoch(0)
    found = trainer.predict()
    trainer.graph.step = 7  # where there is dropout its masks are others now
    assert torch.equal(trainer.predict(), found)


@pytest.mark.mpi(2)
def test_the_run_folder(comm, shared_tmp_path):
    graph = dist_graph(random_graph(1), comm, dtype="float32")
    trainer = make(graph, run_dir=str(shared_tmp_path / "run"))
    result = trainer.fit()
    comm.Barrier()
    folder = shared_tmp_path / "run"
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert lines == result.records
    assert [line["epoch"] for line in lines] == list(range(6))
    needed = {"loss", "seconds", "aggregate_seconds", "aggregate_seconds_mean", "wait_seconds", "wait_seconds_mean"}
    assert all(needed | {"sent_bytes"} <= line.keys() for line in lines)
    assert [line["epoch"] for line in lines if "valid_metric" in line] == [1, 3, 5]
    summary = json.loads((folder / "summary.json").read_text())
    assert summary == result.summary
    assert len(summary["peak_rss_bytes"]) == summary["ranks"] == comm.size
    fresh = build_model(ModelConfig(hidden_feats=8), graph.num_feats, graph.num_classes)
    load_best(folder, fresh)
    for one, other in zip(fresh.parameters(), trainer.model.parameters(), strict=True):
        assert torch.equal(one, other)
    with pytest.raises(RunError, match=r"does not fit the model: convs\.0\.fc_neigh\.weight is"):
        load_best(folder, build_model(ModelConfig(hidden_feats=9), graph.num_feats, graph.num_classes))
    with pytest.raises(InputError, match="--overwrite"):
        make(graph, run_dir=str(folder))


@pytest.mark.mpi(3)
def test_a_loss_that_is_not_a_number_stops_all_ranks(comm):
    with pytest.raises(RunError, match="in epoch 0: the input features on rank 0 are not finite") as caught:
        graph = dist_graph(random_graph(1), comm)
        graph.feats[:] = float("inf")
        make(graph).fit()
    assert caught.value.agreed


@pytest.mark.mpi(2)
def test_what_cannot_be_trained_is_refused_on_all_ranks(comm):
    data = random_graph(1)
    edges, feats = data.edges, data.feats
    for missing, says in {"feats": "no features", "labels": "no labels", "train": "no training vertex"}.items():
        fields = {"feats": feats, "labels": data.labels, "train": data.train}
        del fields[missing]
        graph = dist_graph(GraphData.from_arrays(edges, data.num_nodes, directed=False, **fields), comm)
        with pytest.raises(InputError, match=says):
            Trainer(torch.nn.Linear(8, 4), graph)
    with pytest.raises(InputError, match="rocauc needs two classes"):
        make(dist_graph(data, comm), metric="rocauc")


@pytest.mark.mpi(2)
def test_settings_that_differ_between_ranks_are_named(comm):
    with pytest.raises(RunError, match=r"ranks differ in lr: rank 0 has 0\.5, rank 1 has 0\.25"):
        make(dist_graph(random_graph(1), comm), lr=[0.5, 0.25][comm.rank])


@pytest.mark.mpi(1, 2)
def test_torchs_own_dropout_warns_on_several_ranks(comm, recwarn):
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.drop = torch.nn.Dropout(0.5)
            self.dense = torch.nn.Linear(8, 4)

        def forward(self, graph, feats):
            return self.dense(self.drop(feats))

    Trainer(Model(), dist_graph(random_graph(1), comm))
    messages = [str(warning.message) for warning in recwarn]
    assert bool(messages) == (comm.size > 1 and comm.rank == 0)
    assert all("drop: torch's own module works per rank" in message for message in messages)


def test_a_forward_with_the_graph_second_is_refused():
    class Swapped(torch.nn.Module):
        def forward(self, x, graph):
            return x

    with pytest.raises(InputError, match=r"calls model\(graph, feats\), and Swapped.forward takes \(x, graph\)"):
        check_forward(Swapped())
    check_forward(torch.nn.Linear(2, 2))
    check_forward(build_model(ModelConfig(), 3, 2))
