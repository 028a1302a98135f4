"""A run that is stopped and resumed is bit-identical to one that was never stopped; and what is refused.

States of other people's objects become JSON and tensors, and come back the same.
"""

import json
import math
import shutil
from collections import Counter

import numpy as np
import pytest
import torch
from cut_graphs import dist_graph, random_cut, random_graph, whole_graph
from resumed import numbers, stop_after
from trainers import resumed_to_the_bit, trainer_of

from distgnn.config import ModelConfig
from distgnn.errors import InputError, RunError, RunStopped
from distgnn.train import Trainer
from distgnn.train.checkpoint import files as files
from distgnn.train.checkpoint.state import flatten, unflatten


def make(graph, run_dir, model="sage", norm="batch", own=None, **config) -> Trainer:
    own = {"describe": {"model": {"name": model, "hidden_feats": 8}}} | (own or {})
    options = {"epochs": 9, "eval_every": 2, "lr": 0.05, "run_dir": str(run_dir)} | config
    return trainer_of(graph, ModelConfig(model, 8, norm=norm), own, **options)


def stopped(graph, run_dir, after: int = 3, **config) -> None:
    with pytest.raises(RunStopped):
        make(graph, run_dir, own={"on_epoch": stop_after(after)}, **config).fit()


def state_bits(trainer: Trainer) -> dict[str, bytes]:
    tensors = {f"model.{name}": tensor for name, tensor in trainer.model.state_dict().items()}
    tensors |= {f"adam.{name}": tensor for name, tensor in trainer.optimizer.state().items()}
    return {name: tensor.numpy().tobytes() for name, tensor in tensors.items()}


def metrics(folder) -> list[dict]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


RUNS = {
    "owners": {},
    "late, narrow": {"algorithm": "cd-2", "dtype": "float32", "wire": "int8", "late_row_average": 0.5},
}


@pytest.mark.mpi(3)
@pytest.mark.parametrize("options", RUNS.values(), ids=RUNS.keys())
def test_a_resumed_run_is_bit_identical(comm, shared_tmp_path, options):
    data, folder = random_graph(1), shared_tmp_path / "run"
    resumed, whole = resumed_to_the_bit(
        lambda **run: make(dist_graph(data, comm, **options), **run), shared_tmp_path, 3
    )
    assert state_bits(resumed) == state_bits(whole)
    assert resumed.best_record["epoch"] == whole.best_record["epoch"]
    comm.Barrier()
    assert metrics(folder) == resumed.records
    best = "checkpoint/best.safetensors"
    assert (folder / best).read_bytes() == (shared_tmp_path / "whole" / best).read_bytes()
    assert (folder / "summary.json").is_file()
    assert "SIGUSR1" in (folder / "logs" / f"rank-{comm.rank}.log").read_text()


@pytest.mark.mpi(2)
def test_what_a_resumed_run_has_lost_is_said(comm, shared_tmp_path):
    graph, folder = dist_graph(random_graph(1), comm), shared_tmp_path / "run"
    make(graph, folder, epochs=3).fit()
    said: list[list[str]] = []

    def resumed(epochs):
        trainer, lines = make(graph, folder, epochs=epochs, resume=True), []
        trainer._say = lines.append
        trainer.fit()
        said.append(lines)

    comm.Barrier()
    if comm.rank == 0:
        records = (folder / "metrics.jsonl").read_text().splitlines(keepends=True)
        (folder / "metrics.jsonl").write_text("".join(records[1:]))
    comm.Barrier()
    resumed(4)
    comm.Barrier()
    if comm.rank == 0:
        for name in ("epoch-00000003", "epoch-00000004"):
            shutil.rmtree(folder / "checkpoint" / name, ignore_errors=True)
    comm.Barrier()
    resumed(4)
    if comm.rank == 0:
        assert said[0] == ["metrics.jsonl has 2 of the 3 epochs before the checkpoint", "resuming after 3 epochs"]
        assert said[1] == ["no checkpoint: starting anew, 3 epochs are taken out of metrics.jsonl"]


@pytest.mark.mpi(1, 3)
def test_each_rank_gets_its_own_random_state_back(comm, shared_tmp_path):
    graph = dist_graph(random_graph(1), comm)
    first = make(graph, shared_tmp_path / "run", epochs=2)
    torch.manual_seed(100 + comm.rank)
    first.fit()
    state = torch.get_rng_state()
    second = make(graph, shared_tmp_path / "run", epochs=2, resume=True)
    torch.manual_seed(7)
    second.fit()
    assert torch.equal(torch.get_rng_state(), state)
    assert len({bytes(one.numpy()) for one in comm.allgather(state)}) == comm.size


@pytest.mark.mpi(3)
def test_a_run_resumes_on_another_number_of_ranks(comm, shared_tmp_path):
    """Stopped on P ranks, resumed by each rank alone: the same losses to rounding, float64."""
    data = random_graph(2)
    expected = make(dist_graph(data, comm), shared_tmp_path / "whole").fit()
    stopped(dist_graph(data, comm), shared_tmp_path / "run")
    comm.Barrier()
    if comm.rank == 0:
        resumed = make(whole_graph(data), shared_tmp_path / "run", resume=True).fit()
        assert [record["epoch"] for record in resumed.records] == list(range(9))
        np.testing.assert_allclose(resumed.losses, expected.losses, rtol=1e-10)
    comm.Barrier()


@pytest.mark.mpi(2)
@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"graph": "labels"}, "of another graph: its labels are different"),
        ({"graph": "feats"}, "of another graph: its features are different"),
        ({"graph": "arcs"}, "of another graph: its arcs are different"),
        ({"graph": "weights"}, "of another graph: its edge weights are different"),
        ({"graph": "size"}, "of another graph: 60 vertices there, 61 here"),
        ({"lr": 0.5}, "of other settings: lr is 0.05 there, 0.5 here"),
        ({"seed": 3}, "of other settings: seed is not set there, 3 here"),
        ({"model": "gcn"}, "of other settings: name is sage there, gcn here"),
        ({"norm": "layer"}, r"model\.safetensors does not fit the model: norms\.0\.\w+ is .*, not missing"),
    ],
    ids=lambda value: "-".join(f"{k}-{v}" for k, v in value.items()) if isinstance(value, dict) else "",
)
def test_a_checkpoint_of_something_else_is_refused_by_name(comm, shared_tmp_path, change, says):
    make(dist_graph(random_graph(4, weighted=True), comm), shared_tmp_path / "run", epochs=2).fit()
    other = change.get("graph")
    data = random_graph(4, num_nodes=61 if other == "size" else 60, weighted=True)
    data.edge_weight[5] *= 1 + (other == "weights")
    data.labels[data.train[0]] = (data.labels[data.train[0]] + (other == "labels")) % 4
    data.feats[7, 3] += 1e-6 * (other == "feats")
    data.edges[10] += other == "arcs"
    settings = {name: value for name, value in change.items() if name != "graph"}
    with pytest.raises((InputError, RunError), match=says) as caught:
        make(dist_graph(data, comm), shared_tmp_path / "run", epochs=4, resume=True, **settings).fit()
    assert caught.value.agreed
    comm.Barrier()
    assert len(metrics(shared_tmp_path / "run")) == 2  # nothing was lost


@pytest.mark.mpi(2)
def test_a_late_run_on_another_cut_begins_with_a_synchronous_epoch(comm, shared_tmp_path):
    data, late = random_graph(3), {"algorithm": "cd-2"}
    stopped(dist_graph(data, comm, **late), shared_tmp_path / "run", after=2)
    other = dist_graph(data, comm, random_cut(data.edge_list(), 2, seed=9), **late)
    trainer = make(other, shared_tmp_path / "run", epochs=8, resume=True, verify_every=1)
    said = []
    trainer._say = said.append
    errors = [record.get("gradient_error") for record in trainer.fit().records]
    assert errors[4] < 1e-12 < errors[5]
    assert comm.rank > 0 or "its delayed rows are dropped, synchronous epochs fill them again" in said[0]


@pytest.mark.mpi(2)
def test_a_damaged_checkpoint_gives_way_to_the_one_before(comm, shared_tmp_path, capsys):
    run = shared_tmp_path / "run"
    expected = make(dist_graph(random_graph(5), comm), run, epochs=6, checkpoint_every=2).fit()
    assert [files.epochs_of(path) for path in files.find_checkpoints(run)] == [6, 4]
    comm.Barrier()
    if comm.rank == 0:
        path = run / "checkpoint" / "epoch-00000006" / "adam.safetensors"
        content = bytearray(path.read_bytes())
        content[-1] ^= 1
        path.write_bytes(content)
        (run / "checkpoint" / ".epoch-00000008.partial").mkdir()
    comm.Barrier()
    trainer = make(dist_graph(random_graph(5), comm), run, epochs=6, resume=True)
    trainer._say = lambda text: None  # a quiet run says it all the same
    capsys.readouterr()
    result = trainer.fit()
    said = capsys.readouterr().err
    line = "adam.safetensors is damaged: its checksum is wrong; going on from the older checkpoint, after 4 epochs\n"
    assert (said.count(line), said.count(" is damaged")) == ((1, 1) if comm.rank == 0 else (0, 0))
    assert numbers(result.records) == numbers(expected.records)
    comm.Barrier()
    assert not list((run / "checkpoint").glob(".epoch-*"))


@pytest.mark.mpi(1)
def test_a_finished_run_is_left_as_it_is_and_can_be_lengthened(comm, shared_tmp_path):
    run = shared_tmp_path / "run"
    first = make(whole_graph(random_graph(6)), run, epochs=3).fit()
    again = make(whole_graph(random_graph(6)), run, epochs=3, resume=True).fit()
    assert again.records == first.records
    longer = make(whole_graph(random_graph(6)), run, epochs=5, resume=True).fit()
    expected = make(whole_graph(random_graph(6)), shared_tmp_path / "whole", epochs=5).fit()
    assert longer.losses == expected.losses
    assert len(metrics(run)) == 5
    with pytest.raises(InputError, match="contradict"):
        make(whole_graph(random_graph(6)), run, resume=True, overwrite=True)


@pytest.mark.mpi(2)
def test_a_checkpoint_that_cannot_be_written_keeps_the_last_one(comm, shared_tmp_path, monkeypatch):
    run = shared_tmp_path / "run"
    whole = files.write_file

    def full(folder, name, content):
        if name == "adam" and "00000004" in folder.name:
            raise OSError(28, "No space left on device")
        return whole(folder, name, content)

    monkeypatch.setattr(files, "write_file", full)
    says = r"cannot write a checkpoint to .*: No space left on device; epoch-00000002 is kept"
    with pytest.raises(RunError, match=says) as caught:
        make(dist_graph(random_graph(7), comm), run, checkpoint_every=2).fit()
    assert caught.value.agreed
    comm.Barrier()
    assert [path.name for path in (run / "checkpoint").glob("*epoch*")] == ["epoch-00000002"]


def test_they_come_back_as_they_were():
    state = {
        "text": "a",
        7: (None, True, 1.5, math.inf, -math.inf, [0.1, {"x": {2, 3}}]),
        "milestones": Counter({3: 1}),
        "tensor": torch.arange(3, dtype=torch.bfloat16),
        "array": np.arange(4.0),
        "number": np.float32(0.5),
        "dict": {"dict": {"tensor": "state.tensor"}},
    }
    tensors: dict[str, torch.Tensor] = {}
    stored = json.loads(json.dumps(flatten(state, "state", tensors), allow_nan=False))
    back = unflatten(stored, tensors)
    assert list(back) == list(state)
    for name in ("text", 7, "milestones", "number", "dict"):
        assert back[name] == state[name] and type(back[name]) in (type(state[name]), float)
    assert torch.equal(back["tensor"], state["tensor"]) and back["tensor"].dtype == torch.bfloat16
    np.testing.assert_array_equal(back["array"], state["array"])
    assert back["tensor"].data_ptr() != state["tensor"].data_ptr()


@pytest.mark.parametrize("value", [len, object(), 1j, {(1, 2): 3}, {None: 1}])
def test_what_cannot_be_stored_is_named(value):
    with pytest.raises(InputError, match=r"state\.a\.0 is of type \w+: a checkpoint holds"):
        flatten({"a": [value]}, "state", {})


@pytest.mark.parametrize(
    "stored", [{}, {"exec": "x"}, {"tensor": "gone"}, {"dict": [1]}, {"float": "x"}, {"a": 1, "b": 2}]
)
def test_what_is_damaged_is_an_error(stored):
    with pytest.raises((KeyError, TypeError, ValueError)):
        unflatten(stored, {})
