"""Training in cluster batches: one of everything is the full batch; any ranks; resuming; what is refused."""

import numpy as np
import pytest
import torch
from cut_graphs import dist_graph, random_graph, whole_graph
from resumed import stop_after

from distgnn.config import ModelConfig, Settings, TrainConfig
from distgnn.config.recipes import pick
from distgnn.config.together import check_together
from distgnn.errors import InputError, RunStopped
from distgnn.graph.loader import load
from distgnn.nn import build_model
from distgnn.partition import partition_graph
from distgnn.train import Trainer
from distgnn.train.run.estimate import estimate_bytes

BATCHES = {"cluster_batches": 3}


def make(graph, model="sage", on_epoch=None, norm="layer", **config) -> Trainer:
    torch.manual_seed(0)
    network = build_model(ModelConfig(model, 8, norm=norm), graph.num_feats, graph.num_classes)
    options = {"epochs": 4, "eval_every": 2, "lr": 0.02, "log": None} | config
    return Trainer(network, graph, TrainConfig(**options), on_epoch=on_epoch, say=lambda text: None)


@pytest.mark.parametrize("model", ["sage", "gin"])
def test_one_batch_of_everything_is_the_full_batch(model):
    data = random_graph(1)
    expected = make(whole_graph(data), model).fit()
    result = make(whole_graph(data, clusters=True), model, cluster_batches=1).fit()
    np.testing.assert_allclose(result.losses, expected.losses, rtol=1e-12)


@pytest.mark.mpi(3)
@pytest.mark.parametrize("kind", ["sage", "gcn, weighted", "gin, batch norm"])
def test_ranks_take_the_same_steps(comm, kind):
    model, data = kind.partition(",")[0], random_graph(2, weighted="weighted" in kind)
    options = BATCHES | {"norm": "batch" if "batch norm" in kind else "layer", "batched_epochs": 3, "epochs": 5}
    many = make(dist_graph(data, comm, clusters=True), model, **options).fit()
    one = make(whole_graph(data, clusters=True), model, **options).fit()
    assert [record["epoch"] for record in many.records] == [0, 1, 2, 3, 4]
    np.testing.assert_allclose(many.losses, one.losses, rtol=1e-10)


def test_every_step_of_a_run_draws_its_own_masks():
    graph = whole_graph(random_graph(2), clusters=True)
    trainer, steps = make(graph, **BATCHES, batched_epochs=2), []
    trainer.model.register_forward_pre_hook(lambda *_: steps.append(graph.step) if trainer.model.training else None)
    trainer.fit()
    assert steps == list(range(2 * 3 + 2))


@pytest.mark.mpi(2)
@pytest.mark.parametrize("last", [1, 3])
def test_a_resumed_run_is_bit_identical(comm, shared_tmp_path, last):
    """Stopped among the epochs in batches, and at their end."""
    data, options = random_graph(1), BATCHES | {"batched_epochs": 4, "epochs": 6}

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


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"cluster_batches": -1}, "expected at least 0"),
        ({"cluster_batches": 0, "batched_epochs": 2}, "is about cluster batches"),
        ({"task": "link"}, "do not go with task link"),
        ({"inductive": True}, "do not go with --inductive"),
        ({"verify_every": 2}, "do not go with verify_every"),
        ({"algorithm": "cd-2"}, "need algorithm cd-0"),
        ({"wire": "int8"}, "float32 on the wire"),
        ({"model": "gat"}, "gat does not"),
        ({"model": "appnp", "weighted": True}, "appnp with --weighted does not"),
    ],
    ids=lambda value: "" if isinstance(value, str) else "-".join(value),
)
def test_settings_that_do_not_go_together_are_refused(options, says):
    with pytest.raises(InputError, match=says):
        Settings().with_options(BATCHES | options).checked()


@pytest.mark.parametrize(
    ("option", "says"),
    [
        ({"optimizer": "natural"}, "do not go with optimizer natural"),
        ({"label_reuse": 0.5}, "label reuse"),
    ],
)
def test_options_of_other_extras_are_refused(option, says):
    with pytest.raises(InputError, match=says):
        check_together(cluster_batches=2, **option)


def test_a_partition_without_clusters_is_refused_before_ranks_start(refused, parts, tmp_path):
    words = ["--cluster-batches", "2", "--run-dir", tmp_path / "run"]
    refused("train", parts, *words, says="distgnn partition --clusters")


def test_the_recipe_takes_batches_where_there_are_clusters():
    graph = {"sparse_feats": True, "clusters": True, "train": 5000}
    options = pick("fast", graph, "node", set())[0]
    assert options == {"cluster_batches": 16, "lr": 0.002, "feat_norm": "row-l2,center"}
    assert pick("fast", graph | {"sparse_feats": False}, "node", set())[0]["feat_norm"] == "standardize"
    found = [pick("fast", graph, "node", set(), lambda options: "cluster_batches" not in options)[0]]
    found += [pick("fast", graph | more, "node", set())[0] for more in ({"clusters": False}, {"train": 140})]
    assert not any("cluster_batches" in options for options in found)
    Settings().with_options(options).checked()
    steps = {"optimizer": "adam", "lr": 0.001}
    assert pick("fast", {"sparse_feats": True}, "node", {"cluster_batches"})[0].items() >= steps.items()
    assert pick(None, {}, "node", {"cluster_batches"})[0] == steps


@pytest.mark.parametrize("weighted", [False, True])
def test_held_rows_are_what_the_estimate_says(tmp_path, weighted):
    model, folder = {"name": "gcn", "num_layers": 3, "hidden_feats": 64, "weighted": weighted}, tmp_path / "parts"
    manifest = partition_graph(random_graph(0, weighted=weighted), 1, folder, method="libra", clusters=True)
    graph = load(str(folder))
    network = build_model(ModelConfig(**model), graph.num_feats, graph.num_classes)
    trainer = Trainer(network, graph, TrainConfig(**BATCHES))
    trainer.train_epoch(0)
    held = sum(array.nbytes for array in trainer.passes.held().values())
    settings = {"model": model, "run": {"dtype": "float32", "algorithm": "cd-0"}}
    needed = [estimate_bytes(manifest, 0, settings | more) for more in ({}, {"train": BATCHES})]
    assert needed[1] - needed[0] == held > 0


@pytest.mark.parametrize(
    ("options", "model", "says"),
    [
        ({"clusters": False}, "sage", "distgnn partition --clusters"),
        ({"algorithm": "cd-2", "dtype": "float32"}, "sage", "need algorithm cd-0"),
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
        make(dist_graph(data, comm, clusters=True), cluster_batches=batches).fit().records[1]["sent_bytes"]
        for batches in (1, 3)
    ]
    assert of_pass[0] == of_pass[1] > 0
