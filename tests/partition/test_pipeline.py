"""From a graph to a partition folder: existing folders are spared, and what fails leaves nothing behind."""

import errno
import os
import socket

import numpy as np
import pytest

from distgnn.datasets import GraphData
from distgnn.errors import InputError
from distgnn.partition import load_part, partition_graph, read_manifest

from .folders import make_graph


def entries(tmp_path):
    return sorted(path.name for path in tmp_path.iterdir())


def test_existing_output_needs_overwrite(tmp_path):
    graph, out = make_graph(), tmp_path / "parts"
    partition_graph(graph, 2, out)
    with pytest.raises(InputError, match="exists already"):
        partition_graph(graph, 3, out)
    assert read_manifest(out)["num_parts"] == 2
    partition_graph(graph, 3, out, overwrite=True)
    assert read_manifest(out)["num_parts"] == 3
    assert entries(tmp_path) == ["parts"]


def test_overwriting_spares_what_is_not_ours(tmp_path):
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "thesis.txt").write_text("years of work")
    with pytest.raises(InputError, match=r"has no partition\.json"):
        partition_graph(make_graph(), 2, tmp_path / "notes", overwrite=True)
    for name, says in (("", "not a folder"), ("parts", "cannot write .*Not a directory")):
        with pytest.raises(InputError, match=says):
            partition_graph(make_graph(), 2, tmp_path / "notes" / "thesis.txt" / name, overwrite=True)
    assert entries(tmp_path / "notes") == ["thesis.txt"]
    partition_graph(make_graph(), 2, tmp_path / "parts")
    (tmp_path / "parts" / "part-7").mkdir()
    (tmp_path / "parts" / "part-7" / "arc_ids.npy").write_text("years of work")
    with pytest.raises(InputError, match="is not one of ours"):
        partition_graph(make_graph(), 2, tmp_path / "parts", overwrite=True)


@pytest.mark.parametrize("content", ["{}", "no JSON", '{"format_version": 1, "num_parts": 2}'])
def test_overwriting_spares_a_folder_with_some_partition_json(content, tmp_path):
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "partition.json").write_text(content)
    with pytest.raises(InputError, match="not overwritten"):
        partition_graph(make_graph(), 2, tmp_path / "parts", overwrite=True)
    assert (tmp_path / "parts" / "partition.json").read_text() == content


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()])
def test_a_failure_half_way_leaves_nothing(error, tmp_path, monkeypatch):
    """Neither a partial folder nor new parents; what was to be overwritten is still there."""
    graph = make_graph()
    partition_graph(graph, 2, tmp_path / "old")
    calls = iter(range(100))
    real = os.fsync

    def fail_later(handle):
        if next(calls) == 40:
            raise error
        real(handle)

    monkeypatch.setattr(os, "fsync", fail_later)
    expected = InputError if isinstance(error, OSError) else KeyboardInterrupt
    with pytest.raises(expected):
        partition_graph(graph, 4, tmp_path / "old", overwrite=True)
    calls = iter(range(100))
    with pytest.raises(expected):
        partition_graph(graph, 4, tmp_path / "deep" / "er" / "new")
    monkeypatch.undo()
    assert entries(tmp_path) == ["old"]
    assert load_part(tmp_path / "old", 1).num_parts == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_parts": 0}, "number of parts"),
        ({"num_parts": 10_000}, "10000 parts are more than the"),
        ({"directoin": "both"}, "unknown option 'directoin': did you mean 'direction'?"),
        ({"source": "no-such-graph"}, "no-such-graph"),
        ({"source": GraphData("empty", 5, np.zeros((0, 2), dtype=np.int64), False)}, "no edges"),
    ],
)
def test_bad_requests_leave_nothing(arguments, message, tmp_path):
    request = {"source": make_graph(), "num_parts": 2, "out": tmp_path / "parts"} | arguments
    with pytest.raises(InputError, match=message):
        partition_graph(**request)
    assert entries(tmp_path) == []


def test_what_a_killed_run_left_is_removed_by_the_next(tmp_path):
    partition_graph(make_graph(), 2, tmp_path / "parts")
    dead, host = 2**22 + 1, socket.gethostname()  # beyond the largest process id
    stale = [tmp_path / f".parts.{kind}-{host}-{dead}" for kind in ("partial", "old")]
    kept = [tmp_path / f".parts.partial-{host}-{os.getppid()}", tmp_path / f".parts.partial-elsewhere-{dead}"]
    for path in (*stale, *kept):
        path.mkdir()
        (path / "file").write_text("x")
    partition_graph(make_graph(), 3, tmp_path / "parts", overwrite=True)
    assert not stale[0].exists() and not stale[1].exists() and all(path.exists() for path in kept)
    assert read_manifest(tmp_path / "parts")["num_parts"] == 3


def test_a_folder_set_aside_by_a_killed_run_comes_back(tmp_path):
    """Killed between the two renames of an overwrite: the old partition is still there, under another name."""
    partition_graph(make_graph(), 3, tmp_path / "parts")
    (tmp_path / "parts").rename(tmp_path / f".parts.old-{socket.gethostname()}-{2**22 + 1}")
    with pytest.raises(InputError, match="exists already"):
        partition_graph(make_graph(), 2, tmp_path / "parts")
    assert read_manifest(tmp_path / "parts")["num_parts"] == 3
