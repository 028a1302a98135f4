"""`train --restarts`: who is started again, and what is refused. A run that is killed: tests/bench/faults."""

import pytest

from distgnn.cli import places
from distgnn.cli.commands.launch import _train_command
from distgnn.cli.commands.train import _with_checkpoints
from distgnn.cli.places import Machines, SameRanks, argument_place
from distgnn.config import LaunchConfig, ModelConfig, RunConfig, Schedule, Settings, TrainConfig
from distgnn.errors import InputError
from distgnn.system.jobs.supervise import LOST


def test_hosts_that_cannot_be_read_are_refused(refused):
    refused("launch", "--hosts", "none", "--restarts", "1", "--", "train", "p", says="no hosts can be read")


def test_only_ranks_of_our_launcher_are_started_again(monkeypatch):
    settings = Settings(TrainConfig(), ModelConfig(), RunConfig(), Schedule())
    monkeypatch.setenv("PMI_RANK", "0")
    monkeypatch.delenv("DISTGNN_LAUNCHED", raising=False)
    with pytest.raises(InputError, match="--restarts is for ranks that distgnn starts"):
        _with_checkpoints(settings)
    monkeypatch.setenv("DISTGNN_LAUNCHED", "1")
    assert _with_checkpoints(settings).train.checkpoint_every == 10


def test_machines_that_do_not_answer_are_named(tmp_path, monkeypatch, capsys):
    file = tmp_path / "hosts"
    file.write_text("a:2\nb\nspare\n")
    machines = Machines(str(file), None)
    machines.start(3)
    monkeypatch.setattr(places, "answering", lambda hosts: [host for host in hosts if host[0] != "a"])
    assert machines.room() == 2
    assert capsys.readouterr().err == "distgnn: ranks 0-1 on host a does not answer\n"
    again = SameRanks(["train", "parts"], 1, 3, LaunchConfig(restarts=9), tmp_path)
    assert again.team(machines, 1).start([]) == LOST
    assert "machines for 2 ranks, and 3 are needed: waiting" in capsys.readouterr().err
    file.write_text("")
    assert machines.room() == 2  # an unreadable file: the hosts of before


def test_the_partition_folder_is_found_among_the_words():
    def place(*words):
        return argument_place(command, ["train", *words], "p")

    command = _train_command()
    assert place("p", "--epochs", "9") == 1
    assert place("--run-dir", "p", "--epochs", "9", "p", "--quiet") == 5
    with pytest.raises(InputError, match="cannot find the partition folder p"):
        place("--run-dir", "p")
