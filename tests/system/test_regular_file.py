"""Pipes and devices given as files are refused at once: reading one may never end."""

import os

import pytest
from fuzzing import no_hang

from distgnn.errors import DistGNNError
from distgnn.partition.folder.manifest_file import read_manifest
from distgnn.system.hosts import read_hosts
from distgnn.system.regular_file import read_text
from distgnn.train.checkpoint.files import read_state
from distgnn.train.run.run_folder import read_metrics


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
