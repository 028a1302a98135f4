"""What was measured is kept beside a part, used by the graph that is loaded from it only, and never needed."""

import json
import shutil

import pytest
import torch
from mpi4py import MPI

from distgnn import kernels, ops
from distgnn.graph import tuning
from distgnn.graph.loader import load
from distgnn.kernels.graph import blocks
from distgnn.ops.rowwise import products
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


def loaded(folder):
    return load(str(folder), comm=MPI.COMM_SELF)


def keep(folder, blocked, own_products):
    sidecar = {"machine": tuning.machine(), "seconds": 0.5}
    (folder / SIDECAR).write_text(json.dumps(sidecar | {"blocked": blocked, "own_products": own_products}))


def test_measured_once_and_kept(folder, monkeypatch):
    monkeypatch.setattr(kernels, "tune_rows", lambda *_: frozenset({512, 64}))
    found = loaded(folder).tuning
    saved = json.loads((folder / SIDECAR).read_text())
    assert saved["blocked"] == [64, 512] == sorted(found.blocked) and saved["own_products"] == found.own_products
    assert saved["machine"] == tuning.machine()
    monkeypatch.setattr(kernels, "tune_rows", None)  # calling it would fail
    assert loaded(folder).tuning == found


def test_a_file_that_is_there_is_read(folder, monkeypatch):
    monkeypatch.setattr(kernels, "tune_rows", None)  # calling it would fail
    keep(folder, [256], False)
    assert loaded(folder).tuning == kernels.Tuning(frozenset({256}), False)


@pytest.mark.parametrize(
    "content",
    [
        "not json",
        "[]",
        '{"machine": "another", "blocked": [64], "own_products": true}',
        '{"machine": "MINE", "own_products": true}',
        '{"machine": "MINE", "blocked": []}',
        '{"machine": "MINE", "blocked": ["many"], "own_products": true}',
        '{"machine": "MINE", "blocked": 64, "own_products": true}',
    ],
)
def test_a_file_that_does_not_fit_is_measured_again(folder, monkeypatch, content):
    (folder / SIDECAR).write_text(content.replace("MINE", tuning.machine()))
    monkeypatch.setattr(kernels, "tune_rows", lambda *_: frozenset({1024}))
    monkeypatch.setattr(tuning, "own_products_pay", lambda: True)
    assert loaded(folder).tuning.blocked == {1024}
    assert json.loads((folder / SIDECAR).read_text())["blocked"] == [1024]


def test_a_folder_that_cannot_be_written_is_no_error(folder, monkeypatch):
    (folder / SIDECAR).unlink(missing_ok=True)

    def refuse(*_):
        raise PermissionError("read-only file system")

    monkeypatch.setattr(tuning.os, "replace", refuse)
    monkeypatch.setattr(kernels, "tune_rows", lambda *_: frozenset({64}))
    monkeypatch.setattr(tuning, "own_products_pay", lambda: True)
    assert loaded(folder).tuning.blocked == {64} and not (folder / SIDECAR).exists()
    assert not list((folder / "part-0").glob(".tuning*"))


def test_small_parts_and_a_switch_leave_the_defaults(folder, monkeypatch):
    keep(folder, [64], False)
    monkeypatch.setenv("DISTGNN_TUNING", "0")
    assert loaded(folder).tuning == kernels.Tuning()
    monkeypatch.delenv("DISTGNN_TUNING")
    monkeypatch.setattr(tuning, "FEWEST_ARCS", 1 << 20)
    assert loaded(folder).tuning == kernels.Tuning()


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
    products.add_product(graph, rows, weight, kept)
    torch.testing.assert_close(kept, rows @ weight + 1)
    torch.testing.assert_close(products.weight_gradient(graph, rows, kept), rows.T @ kept)
    assert called == (["product"] * 3 + ["turned"] if own else [])


def test_sums_go_by_blocks_where_these_were_quicker(folder, monkeypatch):
    graph = load(str(folder), comm=MPI.COMM_SELF)
    rows = torch.randn(300, 16, requires_grad=True)
    expected = ops.spmm(graph, rows)
    (expected_grad,) = torch.autograd.grad(expected.square().sum(), rows)
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 64 * 100)
    monkeypatch.setattr(blocks, "FEWEST_ARCS", 1)
    keep(folder, [64], True)
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


@pytest.mark.parametrize("update", ["owners", "copies"])
@pytest.mark.parametrize("order", [(0, 1), (1, 0)], ids=["first first", "second first"])
def test_two_graphs_keep_their_own_tunings(folder, tmp_path, monkeypatch, order, update):
    """Loaded in either order, each gives the bits that it gives alone (one tuning for the process: the last loaded)."""
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 64 * 10)
    monkeypatch.setattr(blocks, "FEWEST_ARCS", 0)
    folders = [tmp_path / "first", tmp_path / "second"]
    for number, own in enumerate(folders):
        shutil.copytree(folder, own)
        keep(own, [[64], []][number], bool(number))
    alone = [_results(load(str(own), comm=MPI.COMM_SELF, update=update)) for own in folders]
    assert alone[0][0] != alone[1][0] and alone[0][2] != alone[1][2]  # else the tunings would not show
    graphs = {number: load(str(folders[number]), comm=MPI.COMM_SELF, update=update) for number in order}
    assert [_results(graphs[number]) for number in (0, 1)] == alone
    assert [_results(graphs[number].with_part(graphs[number].local)) for number in (0, 1)] == alone


def _results(graph):
    """The bytes of a sum, of its gradient and of a weight's."""
    generator = torch.Generator().manual_seed(0)
    rows = torch.randn(graph.num_nodes(), 16, generator=generator, requires_grad=True)
    out = ops.spmm(graph, rows)
    (grad,) = torch.autograd.grad(out.square().sum(), rows)
    turned = products.weight_gradient(graph, rows.detach(), grad)
    return [array.detach().numpy().tobytes() for array in (out, grad, turned)]
