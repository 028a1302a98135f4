"""The partition folder: what is written is read back; what is damaged is named; what fails leaves nothing behind."""

import errno
import json
import os
import socket

import numpy as np
import pytest
from scipy import sparse

from distgnn.datasets import GraphData
from distgnn.errors import InputError, PartitionFormatError
from distgnn.partition import (
    PartitionBook,
    build_local,
    cut_edges,
    describe,
    load_part,
    partition_graph,
    pipeline,
    read_manifest,
    write_partition,
)
from distgnn.partition.local_graph import BLOCKS
from distgnn.partition.writer import manifest_digest

from .graphs import awkward


def make_graph(feats="dense", multilabel=False, weighted=False, directed=False, typed=False):
    edges, num_nodes = awkward("random")
    generator = np.random.default_rng(0)
    values = generator.standard_normal((num_nodes, 6))
    labels = generator.integers(-1, 4, num_nodes)
    if multilabel:
        labels = generator.integers(0, 2, (num_nodes, 5)).astype(np.int8)
    return GraphData(
        "random",
        num_nodes,
        np.array(edges),
        directed,
        feats={"dense": values, "sparse": sparse.csr_matrix(values * (values > 0.5)), "none": None}[feats],
        labels=labels,
        edge_weight=generator.random(len(edges)).astype(np.float32) if weighted else None,
        edge_feats=generator.random((len(edges), 3)).astype(np.float32) if typed else None,
        edge_types=generator.integers(0, 4, len(edges)) if typed else None,
        node_types=generator.integers(0, 2, num_nodes) if typed else None,
        train=np.arange(0, 20),
        valid=np.arange(20, 25),
        test=np.arange(25, 33),
    )


@pytest.fixture
def folder(tmp_path):
    partition_graph(make_graph("sparse", weighted=True, typed=True), 3, tmp_path / "parts")
    return tmp_path / "parts"


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("multilabel", [False, True])
@pytest.mark.parametrize("feats", ["dense", "sparse", "none"])
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


def test_same_seed_same_bytes(tmp_path):
    for name in ("a", "b"):
        partition_graph(make_graph(), 3, tmp_path / name, seed=4)
    files = sorted(path.relative_to(tmp_path / "a") for path in (tmp_path / "a").rglob("*.npy"))
    assert files and all((tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes() for file in files)


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


def array_files():
    graph = make_graph("sparse", weighted=True, typed=True)
    names = pipeline.build_local(PartitionBook(graph.edge_list(), cut_edges(graph.edge_list(), 3)), 0).blocks
    blocks = [f"{name}_{kind}" for name in names for kind in ("indptr", "indices")]
    others = ["global_ids", "in_degrees", "halo_counts", "arc_ids", "edge_weight", "broadcast_rows", "reduce_indptr"]
    others += ["edge_feats", "edge_types", "node_types"]
    return blocks + others + ["feats_indptr", "feats_indices", "feats_data", "labels", "train_mask", "test_mask"]


@pytest.mark.parametrize("name", array_files())
def test_every_damaged_file_is_named(name, folder):
    path = folder / "part-0" / f"{name}.npy"
    good = path.read_bytes()
    for damage in (
        good[:-1],
        good + b"\0",
        good[:20],
        b"",
        good[:-1] + bytes([good[-1] ^ 1]),
        b"\x93NUMPY" + good[:40],
    ):
        path.write_bytes(damage)
        with pytest.raises(PartitionFormatError, match=f"{name}.npy: "):
            load_part(folder, 0)
    path.unlink()
    with pytest.raises(PartitionFormatError, match=f"{name}.npy: missing"):
        load_part(folder, 0)


def resign(folder, change):
    """Change the manifest and give it a right checksum again: a folder that somebody else wrote."""
    path = folder / "partition.json"
    manifest = json.loads(path.read_text())
    change(manifest)
    manifest["sha256"] = manifest_digest(manifest)
    path.write_text(json.dumps(manifest))


def replace_array(folder, name, array):
    """Put another array in place of one, with a right entry in a right manifest."""
    from distgnn.partition.writer import write_array

    entry = write_array(folder / "part-0" / f"{name}.npy", array)
    resign(folder, lambda manifest: manifest["parts"][0]["files"].update({name: entry}))


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("global_ids", lambda a: a - 100, "ids must lie in 0 to"),
        ("global_ids", lambda a: np.zeros_like(a), "an id stands twice"),
        ("global_ids", lambda a: a.astype(np.int32), "dtype int32"),
        ("global_ids", lambda a: a[:-1], "shape"),
        ("global_ids", lambda a: a.astype(">i8"), "dtype"),
        ("in_degrees", lambda a: a - 1000, "negative"),
        ("halo_counts", lambda a: a + 1, "impossible counts"),
        ("halo_counts", lambda a: a * 2, "does not add up"),
        ("halo_counts", lambda a: a[:, [1, 0, 2]], "does not add up"),
        ("arc_ids", lambda a: a + 10**6, "ids must lie in"),
        ("owned_owned_indptr", lambda a: a[::-1].copy(), "must rise"),
        ("owned_halo_indices", lambda a: a + 1000, "columns must lie in"),
        ("halo_owned_indptr", lambda a: a + 1, "must rise"),
        ("broadcast_rows", lambda a: a + 1000, "boundary"),
        ("reduce_indptr", lambda a: a + 1, "must rise"),
        ("labels", lambda a: a + 4, "labels must lie in -1 to 3"),
        ("train_mask", lambda a: np.append(~a[:1], a[1:]), "expected"),
        ("train_mask", lambda a: a.astype(np.int8), "dtype int8"),
        ("feats_indices", lambda a: a + 6, "columns out of range"),
        ("feats_indptr", lambda a: a + 1, "must rise"),
        ("edge_feats", lambda a: a[:, :2], "shape"),
        ("edge_feats", lambda a: a.astype(np.float64), "dtype float64"),
        ("edge_types", lambda a: a + 1, "types must lie in 0 to 3"),
        ("edge_types", lambda a: a[1:], "shape"),
        ("node_types", lambda a: a - 1, "types must lie in 0 to 1"),
    ],
)
def test_contents_are_checked_behind_the_checksums(name, change, message, folder):
    array = np.load(folder / "part-0" / f"{name}.npy")
    replace_array(folder, name, change(array))
    with pytest.raises(PartitionFormatError, match=f"{name}.npy: .*{message}"):
        load_part(folder, 0)


def test_pickled_objects_are_never_loaded(folder):
    path = folder / "part-0" / "labels.npy"
    np.save(path, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    resign(folder, lambda m: m["parts"][0]["files"]["labels"].update(bytes=path.stat().st_size))
    with pytest.raises(PartitionFormatError, match="not readable as an array"):
        load_part(folder, 0, check=False)


@pytest.mark.parametrize(
    "name", ["num_parts", "num_nodes", "num_arcs", "graph", "parts", "name", "pair_rows", "seconds"]
)
def test_manifest_without_a_field(name, folder):
    resign(folder, lambda manifest: manifest.pop(name))
    with pytest.raises(PartitionFormatError, match=r"partition.json: .* missing or wrong"):
        read_manifest(folder)


def change_sizes(manifest):
    manifest["parts"][0]["owned"] += 1
    manifest["parts"][1]["owned"] -= 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (change_sizes, "shape"),
        (lambda m: m["parts"][0].update(files={}), "no entry"),
        (lambda m: m["parts"][0]["files"].update(labels="../../labels"), r"files\.labels is missing or wrong"),
        (lambda m: m["parts"][0]["files"]["labels"].update(shape=[1]), "shape"),
        (lambda m: m["graph"].update(num_classes=1), "labels must lie in"),
        (lambda m: m.update(edge_report=3), "edge_report is missing or wrong"),
    ],
)
def test_a_manifest_that_does_not_fit_its_parts(change, message, folder):
    resign(folder, change)
    with pytest.raises(PartitionFormatError, match=message):
        load_part(folder, 0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not readable as JSON"),
        ("[1, 2]", "no format_version"),
        ('{"a": 1}', "no format_version"),
        ("[" * 100_000, "not readable as JSON"),
        ('{"format_version": 99}', "format version 99 is from a later distgnn"),
        ('{"format_version": true}', "no format_version"),
        ('{"format_version": 1}', "its checksum is wrong"),
    ],
)
def test_not_a_manifest(text, message, folder):
    (folder / "partition.json").write_text(text)
    with pytest.raises(PartitionFormatError, match=message):
        load_part(folder, 0)


def test_not_a_partition_folder(tmp_path, folder):
    with pytest.raises(PartitionFormatError, match="no such folder"):
        read_manifest(tmp_path / "nowhere")
    with pytest.raises(PartitionFormatError, match=r"has no partition\.json"):
        read_manifest(tmp_path)
    with pytest.raises(InputError, match="parts 0 to 2, no part 3"):
        load_part(folder, 3)


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
    with pytest.raises(InputError, match=r"holds no partition\.json"):
        partition_graph(make_graph(), 2, tmp_path / "notes", overwrite=True)
    with pytest.raises(InputError, match="not a folder"):
        partition_graph(make_graph(), 2, tmp_path / "notes" / "thesis.txt", overwrite=True)
    assert entries(tmp_path / "notes") == ["thesis.txt"]


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


def test_unwritable_output(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"cannot write .*Not a directory"):
        partition_graph(make_graph(), 2, tmp_path / "file" / "parts")
    assert entries(tmp_path) == ["file"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_parts": 0}, "number of parts"),
        ({"num_parts": 10_000}, "10000 parts are more than the"),
        ({"method": "metis3"}, "unknown method"),
        ({"direction": "sideways"}, "unknown direction"),
        ({"self_loops": "some"}, "self-loops"),
        ({"order": "random"}, "unknown order"),
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
