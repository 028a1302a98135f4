"""What was measured is kept for the machine, shared by its processes, and never needed; a job has one rounding."""

import json
import os
import subprocess
import sys

import pytest
import torch
from mpi4py import MPI

from distgnn import kernels, ops
from distgnn.errors import InputError
from distgnn.graph import tuning
from distgnn.graph.loader import load
from distgnn.kernels import Tuning
from distgnn.kernels.graph import aggregate
from distgnn.kernels.runtime.tuning import held_tuning
from distgnn.ops.rowwise import products
from distgnn.partition import partition_graph

CHOSEN = Tuning(ahead_256=4096, blocked=1, own_products=0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("tuning") / "parts"
    partition_graph("communities:nodes=300,communities=6,avg_degree=8,feats=8,classes=4,seed=1", 1, out)
    return out


@pytest.fixture(autouse=True)
def file(monkeypatch, tmp_path):
    """Small parts are tuned, by times that say CHOSEN; where that is kept."""
    before = held_tuning()
    monkeypatch.delenv(tuning.VARIABLE, raising=False)
    monkeypatch.setattr(tuning, "FEWEST_ARCS", 0)
    monkeypatch.setattr(tuning, "cache_folder", lambda: tmp_path)
    monkeypatch.setattr(
        tuning,
        "measured",
        lambda asked, _: {v: 1.0 if v == getattr(CHOSEN, asked.field) else 2.0 for v in asked.values},
    )
    yield tuning.kept_file()
    tuning.hold_tuning(before)


def loaded(folder, **options):
    return load(str(folder), comm=MPI.COMM_SELF, **options)


def test_measured_once_and_kept(folder, file, monkeypatch, capsys):
    assert "defaults" in tuning.describe_tuning()
    assert loaded(folder).tuning == held_tuning() == CHOSEN
    assert f"how kernels run quickest on this machine, kept in {file}" in capsys.readouterr().err
    saved = json.loads(file.read_text())
    assert saved["choices"] == CHOSEN._asdict() and saved["times"]["ahead_256"]["4096"] == 1.0
    monkeypatch.setattr(tuning, "tune", None)  # calling it would fail
    assert loaded(folder).tuning == CHOSEN and "measured" not in capsys.readouterr().err
    assert tuning.describe_tuning().startswith("4/8 KiB of rows under way, 16 vectors a pass")
    assert str(file) in tuning.describe_tuning()


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (lambda saved: "not json", "is damaged"),
        (lambda saved: "[]", "is damaged"),
        (lambda saved: json.dumps(saved | {"choices": {"vectors": "many"}}), "is damaged"),
        (lambda saved: json.dumps(saved | {"choices": {"speed": 1}}), "is damaged"),
        (lambda saved: json.dumps({"machine": saved["machine"]}), "is damaged"),
        (lambda saved: json.dumps(saved | {"times": 3}), "is damaged"),
        (lambda saved: json.dumps(saved | {"program": "an older one"}), ""),
    ],
    ids=["text", "list", "word", "name", "cut", "number", "older"],
)
def test_a_file_that_does_not_fit_is_measured_anew(folder, file, change, line, capsys):
    """With one line; in silence where another program wrote it."""
    tuning.machine_tuning()
    file.write_text(change(json.loads(file.read_text())))
    capsys.readouterr()
    assert tuning.machine_tuning() == CHOSEN and tuning.kept(file)[0]["choices"] == CHOSEN._asdict()
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and (line in said if line else "damaged" not in said)


def test_a_folder_that_cannot_be_written_is_no_error(folder, file, monkeypatch, capsys):
    def refuse(*_, **__):
        raise PermissionError("read-only file system")

    monkeypatch.setattr(tuning, "replace_file", refuse)
    assert loaded(folder).tuning == CHOSEN and not file.exists()
    assert "cannot be kept" in capsys.readouterr().err


def test_what_is_open_is_asked_the_next_time(file, monkeypatch):
    """Of a machine so busy that the time was up before the first answer, and of bfloat16 rows once there are some."""
    asked, measured = [], tuning.measured
    monkeypatch.setattr(tuning, "measured", lambda one, held: asked.append(one.field) or measured(one, held))
    monkeypatch.setattr(tuning, "MOST_SECONDS", -1)
    assert tuning.machine_tuning() == Tuning() and not asked

    def until_now(one, held):  # the time is up before another choice than the default is measured a second time
        monkeypatch.setattr(tuning, "MOST_SECONDS", -1)
        return measured(one, held)

    with monkeypatch.context() as patch:
        patch.setattr(tuning, "MOST_SECONDS", 60)
        patch.setattr(tuning, "measured", until_now)
        assert tuning.machine_tuning() == Tuning() and not tuning.kept(file)[0]["times"]
    monkeypatch.setattr(tuning, "MOST_SECONDS", 60)
    assert tuning.machine_tuning() == CHOSEN and "vectors" in asked and "wide_products" not in asked
    asked.clear()
    assert tuning.machine_tuning(narrow=True) == CHOSEN and asked == ["wide_products"]
    assert tuning.machine_tuning(narrow=True) == CHOSEN and asked == ["wide_products"]


def test_what_the_variable_says(folder, file, monkeypatch, tmp_path):
    given = tmp_path / "mine.json"
    for name, text, expected in (
        ("off", None, Tuning()),
        (str(given), '{"product_rows": 48}', Tuning(product_rows=48)),
        (str(given), json.dumps({"machine": "another", "choices": CHOSEN._asdict()}), CHOSEN),
    ):
        given.write_text(text or "")
        monkeypatch.setenv(tuning.VARIABLE, name)
        monkeypatch.setattr(tuning, "FEWEST_ARCS", 1 << 40)  # of small parts, too
        assert loaded(folder).tuning == held_tuning() == expected and not file.exists()
    for text in ("", '{"speed": 1}', '{"vectors": true}', '{"vectors": 0}', '{"vectors": -1}'):
        given.write_text(text)
        with pytest.raises(InputError, match="is neither off nor a file of choices"):
            loaded(folder)
    monkeypatch.setenv(tuning.VARIABLE, str(tmp_path / "none"))
    with pytest.raises(InputError, match="none is neither"):
        loaded(folder)


def test_small_parts_run_by_defaults(folder, file, monkeypatch):
    monkeypatch.setattr(tuning, "FEWEST_ARCS", 1 << 40)
    assert loaded(folder).tuning == Tuning() and not file.exists()


def test_processes_share_one_measuring(tmp_path):
    """Two at once: one measures, the other waits and reads."""
    program = """if True:
        import pathlib, sys, time
        from distgnn.graph import tuning
        folder = pathlib.Path(sys.argv[1])
        tuning.cache_folder = lambda: folder
        def measured(question, held):
            time.sleep(0.05)
            return {value: 1.0 for value in question.values}
        tuning.measured = measured
        (folder / sys.argv[2]).touch()
        while len(list(folder.glob("ready-*"))) < 2:
            time.sleep(0.01)
        tuning.machine_tuning()
    """
    environment = {name: value for name, value in os.environ.items() if name != tuning.VARIABLE}
    both = [
        subprocess.Popen(
            [sys.executable, "-c", program, tmp_path, f"ready-{i}"], env=environment, stderr=subprocess.PIPE
        )
        for i in range(2)
    ]
    said = [process.communicate(timeout=60)[1].decode() for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    assert sum("measured in" in text for text in said) == 1


@pytest.mark.mpi(2)
def test_the_rounding_is_the_jobs(comm, monkeypatch):
    """Rank 0's machine chooses it, unless an earlier job did; what changes no bit is each machine's."""
    mine = Tuning(ahead_256=4096 << comm.rank, own_products=comm.rank, blocked=1 - comm.rank)
    monkeypatch.setattr(tuning, "machine_tuning", lambda narrow: mine)
    assert tuning.job_tuning(comm, comm.rank) == Tuning(ahead_256=4096 << comm.rank, own_products=0, blocked=1)
    assert held_tuning() == mine
    earlier = {"own_products": 1, "wide_products": 0, "blocked": 0} if comm.rank == 0 else None
    assert tuning.job_tuning(comm, 1, earlier) == Tuning(ahead_256=4096 << comm.rank, wide_products=0)
    with pytest.raises(InputError, match="choices are"):
        tuning.job_tuning(comm, 1, {"own": 1})


@pytest.mark.parametrize("own", [1, 0])
def test_products_are_ours_where_these_were_quicker(folder, monkeypatch, own):
    graph, called = loaded(folder, products={"own_products": own}), []
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


def test_two_graphs_keep_their_own_rounding(folder, monkeypatch):
    """Sums go by blocks, and products are torch's, in the one whose job says so, whatever was loaded since."""
    monkeypatch.setattr(aggregate, "BLOCK_BYTES", 512 * 100)
    monkeypatch.setattr(aggregate, "FEWEST_ARCS", 1)
    called, blocked = [], kernels.spmm_blocked
    monkeypatch.setattr(kernels, "spmm_blocked", lambda graph, *a, **k: called.append(graph) or blocked(graph, *a, **k))
    jobs = {"blocked": 1, "own_products": 0}, {"blocked": 0, "own_products": 1}
    alone = [_results(loaded(folder, products=job)) for job in jobs]
    assert {graph.num_blocks for graph in called} == {3}
    for one, other in zip(*alone, strict=True):  # the order of sums differs, nothing else
        assert not torch.equal(one, other)
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-3)
    graphs = [loaded(folder, products=job) for job in jobs]
    for copies in (graphs, [graph.with_part(graph.local) for graph in graphs]):
        again = [_results(graph) for graph in copies]
        assert all(
            torch.equal(a, b) for one, other in zip(again, alone, strict=True) for a, b in zip(one, other, strict=True)
        )


def _results(graph):
    """A sum, its gradient and a weight's."""
    generator = torch.Generator().manual_seed(0)
    rows = torch.randn(graph.num_nodes(), 128, generator=generator, requires_grad=True)
    out = ops.spmm(graph, rows)
    (grad,) = torch.autograd.grad(out.square().sum(), rows)
    return [out.detach(), grad, products.weight_gradient(graph, rows.detach(), grad)]
