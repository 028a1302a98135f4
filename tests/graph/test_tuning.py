"""The tuner's choice is kept beside a part, used when it is loaded, and never needed."""

import json

import pytest
import torch
from mpi4py import MPI

from distgnn import kernels, ops
from distgnn.graph import tuning
from distgnn.graph.loader import load
from distgnn.kernels.graph import blocks
from distgnn.kernels.runtime.tiles import choices
from distgnn.ops.dense import products
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
    products.chosen.own = True


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
        '{"machine": "MINE", "arcs_ahead": {"64": -1}, "blocked": []}',
        '{"machine": "MINE", "arcs_ahead": {"64": 8}}',
        '{"machine": "MINE", "arcs_ahead": {"64": 8}, "blocked": []}',
        '{"machine": "MINE", "arcs_ahead": {"64": 8}, "blocked": ["many"]}',
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


@pytest.mark.parametrize("own", [True, False])
def test_products_are_ours_where_these_were_quicker(folder, monkeypatch, own):
    (folder / SIDECAR).unlink(missing_ok=True)
    monkeypatch.setattr(tuning, "own_products_pay", lambda: own)
    load(str(folder), comm=MPI.COMM_SELF)
    monkeypatch.setattr(tuning, "own_products_pay", None)  # calling it would fail
    graph, called = load(str(folder), comm=MPI.COMM_SELF), []
    ours, ours_turned = kernels.product, kernels.inner_product
    monkeypatch.setattr(kernels, "product", lambda *a, **k: called.append("product") or ours(*a, **k))
    monkeypatch.setattr(kernels, "inner_product", lambda *a: called.append("turned") or ours_turned(*a))
    rows, weight, kept = torch.randn(9, 5), torch.randn(5, 4), torch.ones(9, 4)
    torch.testing.assert_close(products.product(graph, rows, weight), rows @ weight)
    pairs = [(rows, weight), (rows.square(), weight)]
    torch.testing.assert_close(products.sum_of_products(graph, pairs), (rows + rows.square()) @ weight)
    products.add_product(rows, weight, kept)
    torch.testing.assert_close(kept, rows @ weight + 1)
    torch.testing.assert_close(products.weight_gradient(rows, kept), rows.T @ kept)
    assert called == (["product"] * 3 + ["turned"] if own else [])


def test_sums_go_by_blocks_where_these_were_quicker(folder, monkeypatch):
    graph = load(str(folder), comm=MPI.COMM_SELF)
    rows = torch.randn(300, 16, requires_grad=True)
    expected = ops.spmm(graph, rows)
    (expected_grad,) = torch.autograd.grad(expected.square().sum(), rows)
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 64 * 100)
    monkeypatch.setattr(blocks, "FEWEST_ARCS", 1)
    sidecar = {"machine": tuning.machine(), "arcs_ahead": {"64": 32, "512": 16}, "blocked": [64], "own_products": True}
    (folder / SIDECAR).write_text(json.dumps(sidecar))
    graph, called = load(str(folder), comm=MPI.COMM_SELF), []
    blocked = kernels.spmm_blocked
    monkeypatch.setattr(kernels, "spmm_blocked", lambda graph, *a, **k: called.append(graph) or blocked(graph, *a, **k))
    out = ops.spmm(graph, rows)
    (grad,) = torch.autograd.grad(out.square().sum(), rows)
    assert [graph.num_blocks for graph in called] == [3, 3]
    torch.testing.assert_close(out, expected)  # the order of the sums differs, nothing else
    torch.testing.assert_close(grad, expected_grad, rtol=1e-4, atol=1e-4)  # sums of hundreds of numbers
    ops.spmm(graph, torch.randn(300, 128))
    assert len(called) == 2
