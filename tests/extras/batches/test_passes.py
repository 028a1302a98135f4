"""Training in cluster batches: one of everything is the full batch; any ranks; resuming."""

import numpy as np
import pytest
import torch
from cut_graphs import dist_graph, random_graph, whole_graph
from trainers import resumed_to_the_bit, trainer_of

from distgnn.config import ModelConfig, Settings
from distgnn.config.recipes import pick
from distgnn.errors import InputError
from distgnn.graph.loader import load
from distgnn.partition import partition_graph
from distgnn.train.run.estimate import estimate_bytes

BATCHES = {"cluster_batches": 3}


def make(graph, model="sage", norm="layer", **config):
    return trainer_of(graph, ModelConfig(model, 8, norm=norm), **{"epochs": 4, "eval_every": 2, "lr": 0.02} | config)


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
    resumed, whole = resumed_to_the_bit(
        lambda **run: make(dist_graph(data, comm, clusters=True), **options, **run), shared_tmp_path, last
    )
    for mine, wanted in zip(resumed.optimizer.state().values(), whole.optimizer.state().values(), strict=True):
        assert torch.equal(mine, wanted)


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
    trainer = trainer_of(load(str(folder)), ModelConfig(**model), **BATCHES)
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
