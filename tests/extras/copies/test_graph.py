"""Training on copies: as exact as on owners, the same bits again and after a stop, and each vertex counts once."""

import numpy as np
import pytest
import torch
from cut_graphs import dist_graph, gather_rows, random_graph
from trainers import resumed_to_the_bit, trainer_of

from distgnn import ops
from distgnn.config import ModelConfig
from distgnn.errors import InputError
from distgnn.graph.global_values import gather_rows as gather_all

PAPERS = {"copy_updates": "held", "cache_first": False, "transform_first": False}
LATE = {"late": {"algorithm": "cd-2", "copy_updates": "held"}, "paper": {"algorithm": "cd-2", "copy_updates": "paper"}}
RUNS = {"held": {"copy_updates": "held"}, **LATE, "0c": {"copy_updates": "0c"}}


def make(graph, norm: str = "layer", **config):
    return trainer_of(graph, ModelConfig(hidden_feats=8, norm=norm), **{"epochs": 8, "eval_every": 4} | config)


def trained(graph, **options):
    trainer = make(graph, **options)
    result = trainer.fit()
    return result, gather_rows(graph, trainer.predict())


@pytest.mark.mpi(3)
def test_it_is_as_exact_as_on_owners(comm):
    """With batch norm, without kept rows, and in inductive training, too."""
    data = random_graph(1)
    for options in ({}, {"norm": "batch"}, {"inductive": True}):
        owners, logits = trained(dist_graph(data, comm), **options)
        copies, same_logits = trained(dist_graph(data, comm, copy_updates="held"), **options)
        np.testing.assert_allclose(copies.losses, owners.losses, rtol=1e-10)
        np.testing.assert_allclose(same_logits, logits, rtol=1e-6, atol=1e-8)  # after 8 Adam steps
        for split in ("train", "valid", "test"):
            assert copies.records[-1][f"{split}_accuracy"] == owners.records[-1][f"{split}_accuracy"]
    graph = dist_graph(data, comm, copy_updates="held", cache_first=False)
    uncached, paper = (trained(one)[0] for one in (graph, dist_graph(data, comm, **PAPERS)))
    expected, _ = trained(dist_graph(data, comm))
    for run in (uncached, paper):
        np.testing.assert_allclose(run.losses, expected.losses, rtol=1e-10)
    feats, hidden, classes = graph.num_feats, 8, graph.num_classes
    columns = feats + hidden + hidden + 2 * min(hidden, classes), feats + 4 * hidden
    sent = [run.summary["sent_bytes_per_epoch"] for run in (uncached, paper)]
    assert sent[0] * columns[1] == sent[1] * columns[0]


@pytest.mark.mpi(3)
@pytest.mark.parametrize("name", RUNS)
def test_runs_repeat_to_the_bit_and_resume_to_the_same(comm, shared_tmp_path, name):
    kept, data = {"epochs": 9, "eval_every": 2, "norm": "batch"}, random_graph(1)
    runs = resumed_to_the_bit(
        lambda **run: make(dist_graph(data, comm, **RUNS[name]), **kept, **run), shared_tmp_path, 3
    )
    late, exact = runs[1].records, trained(dist_graph(data, comm), **kept)[0].losses
    assert (name == "held") == np.allclose(exact, [record["loss"] for record in late])
    assert (name == "0c") == (late[-1]["sent_bytes"] == 0)


@pytest.mark.mpi(3)
def test_a_run_does_not_go_on_under_another_rule(comm, shared_tmp_path):
    run = {"run_dir": str(shared_tmp_path / "run")}
    make(dist_graph(random_graph(1), comm, **RUNS["late"]), **run).fit()
    with pytest.raises(InputError, match="update is copies there, copies, paper here"):
        make(dist_graph(random_graph(1), comm, **RUNS["paper"]), resume=True, **run).fit()


@pytest.mark.mpi(3)
def test_rows_are_those_of_one_process(comm):
    """Kept aggregations under every rule, rows by global id and in the original order."""
    data = random_graph(3)
    graph = dist_graph(data, comm, copy_updates="held")
    for options in (*LATE.values(), {"copy_updates": "0c"}):
        late = dist_graph(data, comm, **options)
        with torch.no_grad():
            exact = ops.spmm(late, late.feats + 0)
        for late.step in range(6):
            ops.spmm(late, late.feats + late.step)
        torch.testing.assert_close(ops.spmm(late, late.feats), exact)
    rows = torch.from_numpy(np.stack([graph.row_ids, -graph.row_ids], axis=1))
    ids = np.arange(data.num_nodes)
    assert np.array_equal(gather_all(graph, rows, None), np.stack([ids, -ids], axis=1))
    asked = np.random.default_rng(comm.rank).integers(0, data.num_nodes, (40, 2))
    assert np.array_equal(ops.gather_rows_at(graph, rows.double(), asked)[..., 0].numpy(), asked)
