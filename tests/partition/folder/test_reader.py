"""The partition folder: what is written is read back, and what fails leaves nothing behind."""

import errno
import json
import os
import socket

import numpy as np
import pytest
from scipy import sparse

from distgnn.datasets import GraphData
from distgnn.errors import InputError
from distgnn.partition import (
    PartitionBook,
    build_local,
    cut_edges,
    describe,
    load_part,
    partition_graph,
    read_manifest,
    write_partition,
)
from distgnn.partition.core.local_graph import BLOCKS

from ..folders import make_graph


@pytest.mark.parametrize(
    ("feats", "multilabel", "weighted", "directed"),
    [
        ("dense", False, False, False),
        ("sparse", True, True, False),
        ("none", False, True, True),
        ("dense", True, False, True),
    ],
)
def test_what_is_written_is_read_back(feats, multilabel, weighted, directed, tmp_path):
    graph = make_graph(feats, multilabel, weighted, directed)
    edges = graph.edge_list()
    cut = cut_edges(edges, 3)
    manifest = write_partition(graph, edges, cut, tmp_path / "parts", method="libra")
    assert manifest == read_manifest(tmp_path / "parts")
    book = PartitionBook(edges, cut)
    for part in range(3):
        local, built = load_part(tmp_path / "parts", part), build_local(book, part)
        assert_same_structure(local, built)
        assert_same_vertex_data(local, graph)


def assert_same_structure(local, built):
    for name in ("part_id", "num_parts", "num_nodes", "num_owned", "num_interior", "symmetric", "num_arcs"):
        assert getattr(local, name) == getattr(built, name), name
    for name in ("global_ids", "in_degrees", "out_degrees", "halo_counts", "arc_ids", "source_halo_rows"):
        np.testing.assert_array_equal(getattr(local, name), getattr(built, name))
        assert getattr(local, name).dtype == getattr(built, name).dtype
    for name in BLOCKS:
        for got, expected in zip(local.blocks[name], built.blocks[name], strict=True):
            assert type(got) is np.ndarray and got.flags.writeable, "numba and torch take it as it is"
            np.testing.assert_array_equal(got, expected)
            assert got.dtype == expected.dtype
    for name in (
        "broadcast_indptr",
        "broadcast_rows",
        "source_indptr",
        "reduce_indptr",
        "reduce_rows",
        "target_indptr",
    ):
        np.testing.assert_array_equal(getattr(local.plan, name), getattr(built.plan, name))
    assert (local.edge_weight is None) == (built.edge_weight is None)
    if local.edge_weight is not None:
        np.testing.assert_array_equal(local.edge_weight, built.edge_weight)


def assert_same_vertex_data(local, graph):
    ids = local.global_ids[: local.num_owned]
    np.testing.assert_array_equal(local.labels, graph.labels[ids])
    for split, mask in graph.split_masks().items():
        np.testing.assert_array_equal(getattr(local, f"{split}_mask"), mask[ids])
    if graph.feats is None:
        assert local.feats is None
    elif sparse.issparse(graph.feats):
        assert local.feats.dtype == np.float32
        np.testing.assert_array_equal(local.feats.toarray(), graph.feats[ids].toarray().astype(np.float32))
    else:
        np.testing.assert_array_equal(local.feats, graph.feats[ids].astype(np.float32))


def test_a_rank_reads_only_the_manifest_and_its_own_folder(folder):
    for part in (0, 2):
        for file in (folder / f"part-{part}").iterdir():
            file.unlink()
        (folder / f"part-{part}").rmdir()
    assert load_part(folder, 1).part_id == 1


def test_writes_to_a_loaded_part_stay_private(folder):
    load_part(folder, 0).global_ids[:] = -1
    assert load_part(folder, 0).global_ids.min() >= 0


def test_describe_adds_up(folder):
    summary, manifest = describe(folder), read_manifest(folder)
    json.dumps(summary)
    assert sum(part["sent_rows"] for part in summary["parts"]) == summary["exchange_rows"] == manifest["exchange_rows"]
    assert sum(map(sum, summary["pair_rows"])) == summary["exchange_rows"]
    assert max(part["sent_rows"] + part["received_rows"] for part in summary["parts"]) == summary["max_rank_rows"]
    assert sum(part["train"] for part in summary["parts"]) == summary["graph"]["train"] > 0
    assert summary["balances"]["arcs"] == pytest.approx(summary["edge_balance"], abs=1e-6)
    assert summary["balances"]["rows"] == pytest.approx(summary["copies_balance"], abs=1e-6)
    assert sum(part["bytes"] for part in summary["parts"]) == sum(f.stat().st_size for f in folder.rglob("*.npy"))


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


def test_progress_reports_phases(tmp_path):
    steps = []
    partition_graph(make_graph(), 2, tmp_path / "parts", progress=lambda *step: steps.append(step))
    assert steps == [
        ("load", 0, 1), ("load", 1, 1), ("cut", 0, 1), ("cut", 1, 1), ("write", 0, 2), ("write", 1, 2), ("write", 2, 2),
    ]  # fmt: skip


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
