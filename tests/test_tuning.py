"""The tuner's choice is kept beside a part, used when it is loaded, and never needed."""

import json

import pytest
from mpi4py import MPI

from distgnn import kernels, tuning
from distgnn.kernels.tiles import choices
from distgnn.loader import load
from distgnn.partition import partition_graph

SIDECAR = "part-0/tuning.json"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("tuning") / "parts"
    partition_graph("communities:nodes=300,communities=6,avg_degree=8,feats=5,classes=3,seed=1", 1, out)
    return out


@pytest.fixture(autouse=True)
def small_parts_are_tuned(monkeypatch):
    monkeypatch.setattr(tuning, "FEWEST_ARCS", 0)
    yield
    kernels.use_tunings({})


def loaded(folder):
    load(str(folder), comm=MPI.COMM_SELF)
    return {size: choice.ahead for size, choice in choices.by_row_bytes.items()}


def test_measured_once_and_kept(folder, monkeypatch):
    found = loaded(folder)
    saved = json.loads((folder / SIDECAR).read_text())
    assert {int(size): ahead for size, ahead in saved["arcs_ahead"].items()} == found and found
    assert saved["machine"] == tuning.machine()
    monkeypatch.setattr(kernels, "tune_rows", None)  # calling it would fail
    assert loaded(folder) == found


@pytest.mark.parametrize(
    "content",
    [
        "not json",
        "[]",
        '{"machine": "another", "arcs_ahead": {"64": 8}}',
        '{"machine": "MINE", "arcs_ahead": {"64": -1}}',
        '{"machine": "MINE", "arcs_ahead": [1]}',
    ],
)
def test_a_file_that_does_not_fit_is_measured_again(folder, monkeypatch, content):
    (folder / SIDECAR).write_text(content.replace("MINE", tuning.machine()))
    monkeypatch.setattr(kernels, "tune_rows", lambda *_: {64: kernels.Tuning(5)})
    assert loaded(folder) == {64: 5}
    assert json.loads((folder / SIDECAR).read_text())["arcs_ahead"] == {"64": 5}


def test_a_folder_that_cannot_be_written_is_no_error(folder, monkeypatch):
    (folder / SIDECAR).unlink(missing_ok=True)

    def refuse(*_):
        raise PermissionError("read-only file system")

    monkeypatch.setattr(tuning.os, "replace", refuse)
    assert loaded(folder) and not (folder / SIDECAR).exists()
    assert not list((folder / "part-0").glob(".tuning*"))


def test_small_parts_and_a_switch_leave_the_defaults(folder, monkeypatch):
    monkeypatch.setenv("DISTGNN_TUNING", "0")
    assert loaded(folder) == {}
    monkeypatch.delenv("DISTGNN_TUNING")
    monkeypatch.setattr(tuning, "FEWEST_ARCS", 1 << 20)
    assert loaded(folder) == {}
