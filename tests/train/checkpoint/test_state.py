"""A run that is stopped and resumed is bit-identical to one that was never stopped; and what is refused."""

import json
import shutil

import numpy as np
import pytest
import torch
from cut_graphs import dist_graph, random_cut, random_graph, whole_graph
from resumed import numbers, stop_after

from distgnn.config import ModelConfig, TrainConfig
from distgnn.errors import InputError, RunError, RunStopped
from distgnn.nn import build_model
from distgnn.train import Trainer
from distgnn.train.checkpoint import files as files


def make(graph, run_dir, model="sage", norm="batch", on_epoch=None, **config) -> Trainer:
    torch.manual_seed(0)
    network = build_model(ModelConfig(model, 8, norm=norm), graph.num_feats, graph.num_classes)
    options = {"epochs": 9, "eval_every": 2, "lr": 0.05} | config
    settings = {"model": {"name": model, "hidden_feats": 8}}
    quiet = {"say": lambda text: None}
    return Trainer(
        network, graph, TrainConfig(run_dir=str(run_dir), **options), on_epoch=on_epoch, describe=settings, **quiet
    )


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
    data = random_graph(1)
    whole = make(dist_graph(data, comm, **options), shared_tmp_path / "whole")
    expected = whole.fit()
    with pytest.raises(RunStopped, match=r"stopped by SIGUSR1 after 5 epochs; .*--resume") as caught:
        make(dist_graph(data, comm, **options), shared_tmp_path / "run", on_epoch=stop_after(3)).fit()
    assert caught.value.agreed
    resumed = make(dist_graph(data, comm, **options), shared_tmp_path / "run", resume=True, checkpoint_every=2)
    result = resumed.fit()
    assert numbers(result.records) == numbers(expected.records)
    assert state_bits(resumed) == state_bits(whole)
    assert result.summary["best_epoch"] == expected.summary["best_epoch"]
    comm.Barrier()
    assert metrics(shared_tmp_path / "run") == result.records
    best = "checkpoint/best.safetensors"
    assert (shared_tmp_path / "run" / best).read_bytes() == (shared_tmp_path / "whole" / best).read_bytes()
    assert (shared_tmp_path / "run" / "summary.json").is_file()
    assert "SIGUSR1" in (shared_tmp_path / "run" / "logs" / f"rank-{comm.rank}.log").read_text()


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
    with pytest.raises(RunStopped):
        make(dist_graph(data, comm), shared_tmp_path / "run", on_epoch=stop_after(3)).fit()
    comm.Barrier()
    if comm.rank == 0:
        resumed = make(whole_graph(data), shared_tmp_path / "run", resume=True).fit()
        assert [record["epoch"] for record in resumed.records] == list(range(9))
        np.testing.assert_allclose(resumed.losses, expected.losses, rtol=1e-10)
    comm.Barrier()


@pytest.mark.mpi(2)
def test_another_cut_of_the_graph_is_the_same_graph(comm, shared_tmp_path):
    data = random_graph(3, weighted=True)
    expected = make(dist_graph(data, comm), shared_tmp_path / "whole", "gcn", epochs=8).fit()
    with pytest.raises(RunStopped):
        make(dist_graph(data, comm), shared_tmp_path / "run", "gcn", epochs=8, on_epoch=stop_after(2)).fit()
    other = dist_graph(data, comm, random_cut(data.edge_list(), 2, seed=9, split_arcs=True))
    resumed = make(other, shared_tmp_path / "run", "gcn", epochs=8, resume=True).fit()
    np.testing.assert_allclose(resumed.losses, expected.losses, rtol=1e-10)


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
    graph_change = change.get("graph")
    data = random_graph(4, num_nodes=61 if graph_change == "size" else 60, weighted=True)
    if graph_change == "weights":
        data.edge_weight[5] *= 2
    if graph_change == "labels":
        data.labels[data.train[0]] = (data.labels[data.train[0]] + 1) % 4
    if graph_change == "feats":
        data.feats[7, 3] += 1e-6
    if graph_change == "arcs":
        data.edges[10] = data.edges[10] + 1
    settings = {name: value for name, value in change.items() if name != "graph"}
    with pytest.raises((InputError, RunError), match=says) as caught:
        make(dist_graph(data, comm), shared_tmp_path / "run", epochs=4, resume=True, **settings).fit()
    assert caught.value.agreed
    comm.Barrier()
    assert len(metrics(shared_tmp_path / "run")) == 2  # nothing was lost


@pytest.mark.mpi(2)
def test_a_late_run_on_another_cut_begins_with_a_synchronous_epoch(comm, shared_tmp_path):
    data, late = random_graph(3), {"algorithm": "cd-2"}
    with pytest.raises(RunStopped):
        make(dist_graph(data, comm, **late), shared_tmp_path / "run", on_epoch=stop_after(2)).fit()
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


@pytest.mark.mpi(2)
def test_a_loss_that_is_not_a_number_names_epoch_and_layer_and_leaves_the_weights(comm, shared_tmp_path):
    class Breaks(torch.nn.Module):
        def __init__(self, graph):
            super().__init__()
            self.graph, self.dense = graph, torch.nn.Linear(8, 8)

        def forward(self, rows):
            bad = self.training and self.graph.step == 4 and self.graph.rank == 1
            return self.dense(rows) * (float("nan") if bad else 1.0)

    class Model(torch.nn.Module):
        def __init__(self, graph):
            super().__init__()
            self.first, self.second = torch.nn.Linear(8, 8), Breaks(graph)
            self.last = torch.nn.Linear(8, 4)

        def forward(self, graph, feats):
            return self.last(self.second(self.first(feats)))

    graph = dist_graph(random_graph(8), comm, dtype="float32")
    run = shared_tmp_path / "run"
    trainer = Trainer(Model(graph), graph, TrainConfig(epochs=9, run_dir=str(run), checkpoint_every=2))
    with pytest.raises(RunError, match="nan in epoch 4: it began in layer second on rank 1") as caught:
        trainer.fit()
    assert caught.value.agreed
    assert all(bool(torch.isfinite(p).all()) for p in trainer.model.parameters())
    assert files.find_checkpoints(run)[0].name == "epoch-00000004"


@pytest.mark.mpi(1, 2)
def test_an_exact_run_verifies_as_exact_and_a_narrow_one_does_not(comm):
    for options, narrow in (({"dtype": "float32"}, False), ({"dtype": "float32", "wire": "int8"}, True)):
        runs = []
        for every in (0, 2):
            graph = dist_graph(random_graph(9), comm, **options)
            torch.manual_seed(0)
            network = build_model(ModelConfig("gcn", 8, norm="batch"), graph.num_feats, graph.num_classes)
            runs.append(Trainer(network, graph, TrainConfig(epochs=4, verify_every=every)).fit())
        plain, result = runs
        assert result.losses == plain.losses  # looking changes nothing
        found = [record["gradient_error"] for record in result.records if "gradient_error" in record]
        assert len(found) == 2
        low, high = (0, 0) if not narrow else (1e-6, 0.1) if comm.size > 1 else (0, 1e-6)  # alone: rounding only
        assert all(low <= error <= high for error in found)
