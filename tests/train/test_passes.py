"""Training in cluster batches: one of everything is the full batch; any ranks; stages; resuming; what is refused."""

import os
import signal

import numpy as np
import pytest
import torch
from cut_graphs import dist_graph, random_graph, whole_graph
from resumed import stop_after

from distgnn.config import ModelConfig, RunConfig, Schedule, Settings, TrainConfig
from distgnn.errors import InputError, RunStopped
from distgnn.nn import build_model
from distgnn.train import Trainer

BATCHES = {"batch": "cluster:3", "strata": 4}


def make(graph, model="sage", on_epoch=None, norm="layer", **config) -> Trainer:
    torch.manual_seed(0)
    network = build_model(ModelConfig(model, 8, norm=norm), graph.num_feats, graph.num_classes)
    options = {"epochs": 4, "eval_every": 2, "lr": 0.02, "log": None} | config
    return Trainer(network, graph, TrainConfig(**options), on_epoch=on_epoch, say=lambda text: None)


@pytest.mark.parametrize("model", ["sage", "gin"])
def test_one_batch_of_everything_is_the_full_batch(model):
    data = random_graph(1)
    expected = make(whole_graph(data), model).fit()
    for history in (True, False) if model == "gin" else (True,):
        result = make(whole_graph(data, clusters=True), model, batch="cluster:1", history=history).fit()
        np.testing.assert_allclose(result.losses, expected.losses, rtol=1e-12)


@pytest.mark.mpi(4)
@pytest.mark.parametrize("kind", ["sage", "gcn, weighted", "gin, batch norm, no history"])
def test_ranks_take_the_same_steps(comm, kind):
    model, data = kind.partition(",")[0], random_graph(2, weighted="weighted" in kind)
    options = BATCHES | {"history": "no history" not in kind, "norm": "batch" if "batch norm" in kind else "layer"}
    options["stages"] = "cluster:3,full:2"
    many = make(dist_graph(data, comm, clusters=True), model, **options).fit()
    one = make(whole_graph(data, clusters=True), model, **options).fit()
    assert [record["epoch"] for record in many.records] == [0, 1, 2, 3, 4]
    np.testing.assert_allclose(many.losses, one.losses, rtol=1e-10)


def test_every_step_of_a_run_draws_its_own_masks():
    graph = whole_graph(random_graph(2), clusters=True)
    trainer, steps = make(graph, **BATCHES, stages="full:1, cluster:2, full:2"), []
    trainer.model.register_forward_pre_hook(lambda *_: steps.append(graph.step) if trainer.model.training else None)
    trainer.fit()
    assert steps == list(range(1 + 2 * 3 + 2))


@pytest.mark.mpi(2)
@pytest.mark.parametrize("last", [1, 3])
def test_a_resumed_run_is_bit_identical(comm, shared_tmp_path, last):
    """Stopped within a stage of batches, and at its end."""
    data, options = random_graph(1), BATCHES | {"stages": "cluster:4,full:2"}

    def graph():
        return dist_graph(data, comm, clusters=True)

    expected = make(graph(), run_dir=str(shared_tmp_path / "whole"), **options)
    losses = expected.fit().losses
    with pytest.raises(RunStopped):
        make(graph(), run_dir=str(shared_tmp_path / "run"), on_epoch=stop_after(last), **options).fit()
    resumed = make(graph(), run_dir=str(shared_tmp_path / "run"), resume=True, **options)
    assert resumed.fit().losses == losses
    for mine, wanted in zip(resumed.optimizer.state().values(), expected.optimizer.state().values(), strict=True):
        assert torch.equal(mine, wanted)


@pytest.mark.mpi(2)
@pytest.mark.parametrize("options", [{}, {"history": False}, {"optimizer": "sgd", "stages": "cluster:2,full:1"}])
def test_a_run_stopped_within_a_pass_is_resumed_to_the_same_bits(comm, shared_tmp_path, options):
    """One rank gets the signal in the second step of the second pass; all stop after it."""
    data, options = random_graph(1), BATCHES | {"epochs": 3, "checkpoint_every": 1} | options

    def trainer(folder: str, **more) -> Trainer:
        made = make(dist_graph(data, comm, clusters=True), run_dir=str(shared_tmp_path / folder), **options, **more)
        return made

    expected = trainer("whole")
    losses = expected.fit().losses
    stopped = trainer("run")
    known = stopped.optimizer.step

    def step() -> None:
        known()
        if stopped.graph.step == 3 + 1 and comm.rank == comm.size - 1:
            os.kill(os.getpid(), signal.SIGUSR1)

    stopped.optimizer.step = step
    with pytest.raises(RunStopped):
        stopped.fit()
    assert (len(stopped.begun.shares), len(stopped.records)) == (2, 1)
    resumed = trainer("run", resume=True)
    assert resumed.fit().losses == losses
    assert all(map(torch.equal, resumed.optimizer.state().values(), expected.optimizer.state().values()))
    assert all(map(torch.equal, resumed.model.state_dict().values(), expected.model.state_dict().values()))


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ({"batch": "cluster"}, "expected full, or cluster:M"),
        ({"batch": "sampled:10"}, "expected full, or cluster:M"),
        ({"history": False}, "--no-history is about cluster batches"),
        ({"strata": 8}, "--strata is about cluster batches"),
        ({"stages": "cluster:8,full:2"}, "say how many steps a pass has"),
        (BATCHES | {"stages": "cluster:0"}, "expected epochs of each kind"),
        (BATCHES | {"stages": "full:3"}, "has no cluster batches"),
        (BATCHES | {"strata": 0}, "expected at least 1"),
        (BATCHES | {"task": "link"}, "do not go with task link"),
        (BATCHES | {"inductive": True}, "do not go with --inductive"),
        (BATCHES | {"verify_every": 2}, "do not go with --verify-every"),
    ],
    ids=lambda value: "" if isinstance(value, str) else "-".join(value),
)
def test_settings_that_do_not_go_together_are_refused(config, says):
    with pytest.raises(InputError, match=says):
        TrainConfig(**config).check()


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"run": RunConfig("cd-2")}, "need algorithm cd-0"),
        ({"run": RunConfig("0c")}, "need algorithm cd-0"),
        ({"run": RunConfig(update="copies")}, "need update on owners"),
        ({"schedule": Schedule(wire="int8")}, "float32 on the wire"),
        ({"model": ModelConfig("gat")}, "gat does not"),
        ({"model": ModelConfig(label_reuse=0.5)}, "label reuse"),
    ],
)
def test_a_run_that_batches_do_not_go_with_is_refused_before_it_starts(settings, says):
    with pytest.raises(InputError, match=says):
        Settings(TrainConfig(**BATCHES), **settings).checked()


@pytest.mark.parametrize(
    ("options", "model", "says"),
    [
        ({"clusters": False}, "sage", "distgnn partition --clusters"),
        ({"algorithm": "cd-2", "dtype": "float32"}, "sage", "need algorithm cd-0"),
        ({"update": "copies"}, "sage", "need update on owners"),
        ({}, "gat", "GATConv does not"),
    ],
)
def test_a_graph_or_model_that_batches_do_not_go_with_is_refused(options, model, says):
    with pytest.raises(InputError, match=says):
        make(whole_graph(random_graph(1), **{"clusters": True} | options), model, **BATCHES)


@pytest.mark.mpi(2)
def test_a_pass_sends_the_rows_of_an_epoch(comm):
    data = random_graph(2)
    of_pass = [
        make(dist_graph(data, comm, clusters=True), batch=batch, strata=4).fit().records[1]["sent_bytes"]
        for batch in ("cluster:1", "cluster:3")
    ]
    assert of_pass[0] == of_pass[1] > 0
