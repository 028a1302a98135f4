"""Loggers and callbacks: what they are told, when, and that a resumed run goes on in their files."""

import csv
import io
import os
import signal
import sys
import types

import pytest
import torch
from cut_graphs import dist_graph, random_graph, whole_graph
from trainers import trainer_of

from distgnn.config import TrainConfig
from distgnn.errors import InputError, RunStopped
from distgnn.system.atomic import why_foreign
from distgnn.train import Callback
from distgnn.train.run.callbacks import ConsoleLogger
from distgnn.train.run.run_folder import run_files


def make(graph, callbacks=(), **config):
    return trainer_of(graph, own={"callbacks": callbacks}, **{"epochs": 6, "eval_every": 2} | config)


class Stop:
    """Asks for a stop after an epoch, as a launcher does."""

    def __init__(self, epoch: int):
        self.epoch = epoch

    def on_train_epoch_end(self, trainer, record):
        if record["epoch"] == self.epoch:
            os.kill(os.getpid(), signal.SIGUSR1)


class Average(Callback):
    """Has a state: a mean of the weights, a count, and what it was told."""

    def __init__(self):
        self.mean, self.seen = torch.zeros(()), []

    def on_train_epoch_end(self, trainer, record):
        self.mean = 0.9 * self.mean + 0.1 * next(trainer.model.parameters()).detach().sum()
        self.seen.append(("step", record["epoch"], "valid_metric" in record))

    def on_validation_end(self, trainer, record):
        self.seen.append(("evaluation", record["epoch"], "valid_metric" in record))

    def on_train_end(self, trainer, record):
        self.seen.append(("end", record["epochs"], "test_metric" in record))

    def state_dict(self):
        return {"mean": self.mean, "seen": self.seen}

    def load_state_dict(self, state):
        self.mean, self.seen = state["mean"], state["seen"]


@pytest.mark.mpi(2)
def test_callbacks_are_called_on_every_rank_and_resumed_with_their_state(comm, shared_tmp_path):
    graph = dist_graph(random_graph(1), comm)
    whole, broken, resumed = Average(), Average(), Average()
    make(graph, [whole]).fit()
    run = {"run_dir": str(shared_tmp_path / "run")}
    with pytest.raises(RunStopped):
        make(graph, [broken, Stop(1)], **run).fit()  # ends after the epoch in which all ranks know of the signal
    make(graph, [resumed], resume=True, **run).fit()
    steps = [[("evaluation", e, True), ("step", e, True)] if e % 2 else [("step", e, False)] for e in range(6)]
    assert whole.seen == [one for epoch in steps for one in epoch] + [("end", 6, True)]
    assert broken.seen == whole.seen[: len(broken.seen)] and len(broken.seen) < len(whole.seen)
    assert resumed.seen == whole.seen
    assert torch.equal(resumed.mean, whole.mean)
    comm.Barrier()


@pytest.mark.slow
def test_a_state_that_cannot_be_stored_is_refused_at_once(tmp_path):
    class Bad(Callback):
        def state_dict(self):
            return {"model": [1, len]}

        def load_state_dict(self, state):
            pass

    with pytest.raises(InputError, match=r"state\.callbacks\.0\.model\.1 is of type builtin_function_or_method"):
        make(whole_graph(random_graph(1)), [Bad()], run_dir=str(tmp_path / "run"))
    assert not (tmp_path / "run").exists()
    make(whole_graph(random_graph(1)), [Bad()]).fit()


@pytest.mark.mpi(2)
def test_the_console_is_the_default_on_rank_0(comm, capfd):
    graph = dist_graph(random_graph(1), comm)
    make(graph, log=TrainConfig().log, epochs=30).fit()
    lines = capfd.readouterr().err.splitlines()
    mine = [line for line in lines if line.startswith("epoch ")]
    assert [line.split()[1] for line in mine] == ([f"{e}/30" for e in range(3, 31, 3)] if comm.rank == 0 else [])
    assert all("loss " in line and "s/epoch" in line for line in mine)
    make(graph).fit()
    assert "epoch" not in capfd.readouterr().err


def test_a_bar_on_a_terminal(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    shown = Terminal()
    monkeypatch.setattr(sys, "stderr", shown)
    make(whole_graph(random_graph(1)), log="console").fit()
    assert "epoch 6/6 [========================] loss " in shown.getvalue().split("\r")[-2]
    assert shown.getvalue().endswith("\r\n")


def test_an_old_validation_value_says_from_which_epoch_it_is():
    trainer = types.SimpleNamespace(records=[], config=TrainConfig(), best_by="valid_metric", metric="accuracy")
    console = ConsoleLogger()
    console.on_train_start(trainer, {})
    records = [{"epoch": epoch, "loss": 0.5, "seconds": 0.02} for epoch in range(4)]
    records[1]["valid_metric"] = 0.75
    assert [console.text_of(trainer, record) for record in records[:3]] == [
        "loss 0.5000  20 ms/epoch",
        "loss 0.5000  20 ms/epoch  valid 75.00 %",
        "loss 0.5000  20 ms/epoch  valid 75.00 % (epoch 2)",
    ]
    trainer.best_by = "recall"
    assert console.text_of(trainer, records[0] | {"recall": 0.5}).endswith("recall 0.5000")


@pytest.mark.mpi(2)
def test_a_csv_file_goes_on_where_a_run_is_resumed(comm, shared_tmp_path):
    graph, run = dist_graph(random_graph(1), comm), {"run_dir": str(shared_tmp_path / "run"), "log": "csv"}
    with pytest.raises(RunStopped):
        make(graph, [Stop(1)], **run).fit()
    comm.Barrier()
    if comm.rank == 0:  # what a crash after the checkpoint may have left
        with open(shared_tmp_path / "run" / "metrics.csv", "a") as stream:
            stream.write("99,half a li")
    result = make(graph, resume=True, **run).fit()
    comm.Barrier()
    with open(shared_tmp_path / "run" / "metrics.csv", newline="") as stream:
        table = list(csv.DictReader(stream))
    assert [float(line["loss"]) for line in table] == result.losses
    assert [line["valid_metric"] != "" for line in table] == [False, True] * 3
    assert why_foreign(shared_tmp_path / "run", run_files) is None  # --overwrite may replace it
    comm.Barrier()


def test_tensorboard_gets_scalars_or_is_named(tmp_path, monkeypatch):
    """The package itself is not needed here: its writer is replaced."""
    graph, run = whole_graph(random_graph(1)), {"run_dir": str(tmp_path / "run"), "log": "tensorboard"}
    monkeypatch.setattr("distgnn.config.train.find_spec", lambda name: None)
    with pytest.raises(InputError, match="needs the package tensorboard: pip install tensorboard"):
        make(graph, **run)
    written = []

    class SummaryWriter:
        def __init__(self, folder, purge_step):
            written.append((folder, purge_step))

        def add_scalar(self, name, value, step):
            written.append((name, value, step))

        flush = close = lambda self: None

    monkeypatch.setattr("distgnn.config.train.find_spec", lambda name: True)
    module = types.ModuleType("tensorboard")
    module.SummaryWriter = SummaryWriter
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", module)
    result = make(graph, **run).fit()
    assert written[0] == (str(tmp_path / "run" / "tensorboard"), None)
    assert [value for name, value, _ in written[1:] if name == "loss"] == result.losses
