"""Who goes on after a fault: how many ranks, and on which partition folder."""

import subprocess
from pathlib import Path

import pytest

from distgnn.cli import elastic
from distgnn.cli.commands.launch import _train_command
from distgnn.cli.elastic import Elastic, Machines, argument_place
from distgnn.config import LaunchConfig
from distgnn.errors import InputError
from distgnn.system.jobs.supervise import LOST

WORDS = ["train", "parts", "--run-dir", "run"]


class Rooms:
    """Places with room for as many ranks as listed, one number per restart."""

    def __init__(self, *rooms):
        self.rooms = list(rooms)

    def room(self):
        return self.rooms.pop(0)

    def start(self, num_ranks):
        return lambda words: num_ranks


@pytest.fixture
def choose(tmp_path, monkeypatch):
    """`choose(rooms, fruitless, min_ranks=…)`: (ranks or exit code, folder's name) of each restart."""

    def merge(command, **_):
        out = Path(command[command.index("--out") + 1])
        out.mkdir(parents=True)
        (out / "partition.json").touch()
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(elastic.subprocess, "run", merge)

    def choose(rooms, fruitless, prepared=(), **options):
        chosen = Elastic(WORDS, 1, 4, LaunchConfig(restarts=9, **options), tmp_path)
        for name in prepared:
            (tmp_path / name).mkdir()
            (tmp_path / name / "partition.json").touch()
        places, seen = Rooms(*rooms), []
        for count in fruitless:
            team = chosen.team(places, count)
            seen.append((team.start(team.words), Path(team.words[1]).name))
        return seen

    return choose


def test_all_ranks_again_while_there_is_a_machine_for_each(choose):
    assert choose([4, 4, 4], [1, 1, 2]) == [(4, "parts")] * 3


def test_fewer_machines_fewer_ranks_and_back(choose):
    assert choose([3, 2, 4], [1, 1, 1], min_ranks=2) == [(3, "parts-3"), (2, "parts-2"), (4, "parts")]


def test_ranks_that_die_twice_are_one_less_and_tried_again_after_a_checkpoint(choose):
    seen = choose([4] * 6, [1, 2, 3, 4, 5, 1], min_ranks=2)
    assert [ranks for ranks, _ in seen] == [4, 3, 3, 2, 2, 4]


def test_never_fewer_than_asked_for(choose, capsys):
    assert choose([4, 4, 1], [1, 2, 3], min_ranks=4) == [(4, "parts"), (4, "parts"), (LOST, "parts")]
    assert "machines for 1 ranks, and 4 are needed (--min-ranks): waiting" in capsys.readouterr().err
    assert choose([3], [1]) == [(LOST, "parts")]  # without --min-ranks


def test_more_machines_get_the_largest_prepared_folder(choose, tmp_path):
    prepared = ["cut-6", "cut-3"]
    seen = choose([9, 5, 3], [1, 1, 1], prepared, min_ranks=2, parts_for=str(tmp_path / "cut-{ranks}"))
    assert seen == [(6, "cut-6"), (4, "parts"), (3, "cut-3")]


def test_parts_that_cannot_be_merged_are_said(choose, monkeypatch, capsys):
    monkeypatch.setattr(elastic.subprocess, "run", lambda command, **_: subprocess.CompletedProcess(command, 2))
    assert choose([3], [1], min_ranks=2) == [(LOST, "parts")]
    assert "cannot go on with 3 ranks: merging parts ended with exit code 2" in capsys.readouterr().err


def test_machines_that_do_not_answer_are_named(tmp_path, monkeypatch, capsys):
    file = tmp_path / "hosts"
    file.write_text("a:2\nb\nspare\n")
    machines = Machines(str(file), None, tmp_path)
    machines.start(3)
    monkeypatch.setattr(elastic, "answering", lambda hosts: [host for host in hosts if host[0] != "a"])
    assert machines.room() == 2
    assert capsys.readouterr().err == "distgnn: ranks 0-1 on host a does not answer\n"
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


def test_settings_of_restarts_are_checked(refused, parts):
    refused("train", parts, "--min-ranks", 1, says="they need --restarts")
    refused("train", parts, "--restarts", 1, "--min-ranks", 0, says="min_ranks is 0: expected at least 1")
    refused("train", parts, "--restarts", 1, "--parts-for", "x", says="expected a path with {ranks}")
