"""A power cut at any instant of writing a checkpoint leaves the old one or the new one, never half."""

import random
import shutil

import pytest
from recorder import Recorder, write_tree

from distgnn.errors import RunError
from distgnn.train.checkpoint import files

STATE = {"ranks": 1, "settings": {}, "graph": {}, "stopping": {}, "cut": []}
SIZES = {"model": 100, "adam": 300}


def write_checkpoint(run, epochs: int) -> None:
    partial = files.begin(run, epochs)
    entries = {name: files.write_file(partial, name, bytes([epochs]) * size) for name, size in SIZES.items()}
    files.commit(run, partial, epochs, STATE | {"files": entries})


def whole(path) -> int:
    """Epochs of a checkpoint, all of which reads. Raises: RunError."""
    state = files.read_state(path)
    for name in state["files"]:
        assert files.read_file(path, state, name) == bytes([state["epochs_done"]]) * SIZES[name]
    return state["epochs_done"]


@pytest.fixture(scope="module")
def disk(tmp_path_factory):
    """Checkpoints of 1 and 2 epochs, then one of 3, which removes the first, and 3 again, as after a resume."""
    run = tmp_path_factory.mktemp("run")
    write_checkpoint(run, 1)
    write_checkpoint(run, 2)
    with Recorder(run) as disk:
        write_checkpoint(run, 3)
        disk.first_done = len(disk.steps)
        write_checkpoint(run, 3)
    return disk


@pytest.mark.slow
def test_the_newest_checkpoint_is_whole_at_every_instant(disk, tmp_path):
    seen = set()
    for count, tree in disk.states(random.Random(0)):
        write_tree(tmp_path / "run", tree)
        newest = whole(files.find_checkpoints(tmp_path / "run")[0])
        seen.add(newest)
        assert newest == 3 or (newest == 2 and count < len(disk.steps)), f"after {count} of {len(disk.steps)}"
        # What was said to be written is there; until the same epoch is written again, which removes it first.
        assert newest == 3 or count != disk.first_done
        shutil.rmtree(tmp_path / "run")
    assert seen == {2, 3}


def test_without_syncing_half_a_checkpoint_is_found(tmp_path, monkeypatch):
    """The recorder sees what it is for."""
    monkeypatch.setattr(Recorder, "_fsync", lambda self, original, descriptor: original(descriptor))
    write_checkpoint(tmp_path / "run", 1)
    with Recorder(tmp_path / "run") as disk:
        write_checkpoint(tmp_path / "run", 2)
    broken = 0
    for number, (_, tree) in enumerate(disk.states(random.Random(0))):
        write_tree(tmp_path / str(number), tree)
        try:
            whole(files.find_checkpoints(tmp_path / str(number))[0])
        except RunError:
            broken += 1
    assert broken
