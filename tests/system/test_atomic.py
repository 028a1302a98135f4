"""A folder that appears whole or not at all, in no place but its own; pipes and devices are never read."""

import multiprocessing
import os
import socket

import pytest
from fuzzing import no_hang

from distgnn.errors import DistGNNError, InputError
from distgnn.partition.folder.manifest_file import read_manifest
from distgnn.system import atomic
from distgnn.system.atomic import lock_file, new_folder, read_text, remove_stale, why_foreign
from distgnn.system.hosts import read_hosts
from distgnn.train.checkpoint.files import read_state
from distgnn.train.run.run_folder import read_metrics

FILES = {"marker", "data/rows"}


def ours(folder):
    if not (folder / "marker").is_file():
        raise InputError(f"{folder} holds no marker")
    return FILES


def make(out, text, overwrite=False, meanwhile=lambda: None):
    with new_folder(out, ours, overwrite) as folder:
        (folder / "data").mkdir()
        (folder / "data" / "rows").write_text(text)
        (folder / "marker").write_text(text)
        meanwhile()


@pytest.fixture(params=["renameat2", "plain rename"], autouse=True)
def renaming(request, monkeypatch):
    """With and without the system call that exchanges two names."""
    if request.param == "plain rename":
        monkeypatch.setattr(atomic, "_rename", lambda *_: None)


def test_made_replaced_and_nothing_beside_it(tmp_path):
    make(tmp_path / "out", "first")
    with pytest.raises(InputError, match=r"exists already: .* --overwrite \(from Python: overwrite=True\)"):
        make(tmp_path / "out", "second")
    make(tmp_path / "out", "second", overwrite=True)
    assert (tmp_path / "out" / "marker").read_text() == "second"
    assert os.listdir(tmp_path) == ["out"]


def test_an_empty_folder_is_replaced_only_when_asked(tmp_path):
    (tmp_path / "out").mkdir()
    with pytest.raises(InputError, match="exists already"):
        make(tmp_path / "out", "first")
    make(tmp_path / "out", "first", overwrite=True)
    assert (tmp_path / "out" / "marker").is_file()


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("foreign", [True, False])
def test_what_appears_meanwhile(foreign, overwrite, tmp_path):
    """A folder that another process put there is replaced only if that was asked for, and it is ours."""

    def meanwhile():
        make(tmp_path / "out", "other")
        if foreign:
            (tmp_path / "out" / "thesis.txt").write_text("years of work")

    if overwrite and not foreign:
        make(tmp_path / "out", "mine", overwrite, meanwhile)
        assert (tmp_path / "out" / "marker").read_text() == "mine"
        return
    with pytest.raises(InputError, match="not one of ours" if overwrite else "another process meanwhile"):
        make(tmp_path / "out", "mine", overwrite, meanwhile)
    assert (tmp_path / "out" / "marker").read_text() == "other"
    assert os.listdir(tmp_path) == ["out"]


def _stale_name(tmp_path):
    return tmp_path / f".out.partial-{socket.gethostname()}-{2**22 + 1}"  # beyond the largest process id


def _hold(folder, ready, done):
    lock = atomic.lock_file(folder)
    ready.set()
    done.wait(300)
    os.close(lock)


def test_a_folder_that_a_process_of_another_namespace_fills_stays(tmp_path):
    """Its process id is not alive here: only its lock tells."""
    partial = _stale_name(tmp_path)
    partial.mkdir()
    context = multiprocessing.get_context("fork")
    ready, done = context.Event(), context.Event()
    process = context.Process(target=_hold, args=(partial, ready, done))
    process.start()
    try:
        assert ready.wait(300)
        remove_stale(tmp_path / "out")
        assert partial.is_dir()
    finally:
        done.set()
        process.join()
    remove_stale(tmp_path / "out")
    assert not partial.exists()


@pytest.mark.parametrize("file", ["thesis.tex", "data/notes.txt"])
def test_what_is_foreign_stays(tmp_path, file):
    make(tmp_path / "out", "first")
    (tmp_path / "out" / file).write_text("precious")
    with pytest.raises(InputError, match=f"{file} in it is not one of ours"):
        make(tmp_path / "out", "second", overwrite=True)
    assert (tmp_path / "out" / file).read_text() == "precious"


def test_a_link_in_it_is_foreign_and_an_empty_folder_is_nothing(tmp_path):
    make(tmp_path / "out", "first")
    (tmp_path / "out" / "empty").mkdir()
    assert why_foreign(tmp_path / "out", ours) is None
    (tmp_path / "out" / "data" / "more").symlink_to(tmp_path)
    assert why_foreign(tmp_path / "out", ours) == "data/more in it is not one of ours"


def test_a_lock_is_of_the_file_under_the_name(tmp_path, monkeypatch):
    """Whoever waited for a lock must not hold that of a file which was replaced."""
    (tmp_path / "lock").touch()
    (tmp_path / "new").touch()
    before = os.open

    def replaced_meanwhile(path, flags):
        handle = before(path, flags)
        os.replace(tmp_path / "new", tmp_path / "lock")
        return handle

    monkeypatch.setattr(os, "open", replaced_meanwhile)
    with pytest.raises(FileNotFoundError):
        lock_file(tmp_path / "lock")


def test_only_regular_files_are_read(tmp_path):
    (tmp_path / "text").write_text("Größe")
    (tmp_path / "link").symlink_to(tmp_path / "text")
    assert read_text(tmp_path / "text") == read_text(tmp_path / "link") == "Größe"
    os.mkfifo(tmp_path / "pipe")
    with no_hang():
        for path in (tmp_path / "pipe", "/dev/zero", "/dev/null"):
            with pytest.raises(OSError, match="not a regular file"):
                read_text(path)
    with pytest.raises(IsADirectoryError):
        read_text(tmp_path)


@pytest.mark.parametrize(
    "read, name",
    [
        (read_hosts, "hosts.txt"),
        (lambda path: read_manifest(path.parent), "partition.json"),
        (lambda path: read_state(path.parent), "checkpoint.json"),
    ],
    ids=["hosts", "partition", "checkpoint"],
)
def test_readers_refuse_a_pipe(read, name, tmp_path):
    os.mkfifo(tmp_path / name)
    with no_hang(), pytest.raises(DistGNNError):
        read(tmp_path / name)


def test_records_of_a_run_do_not_wait_for_a_pipe(tmp_path):
    os.mkfifo(tmp_path / "metrics.jsonl")
    with no_hang():
        assert read_metrics(tmp_path / "metrics.jsonl") == []
