"""The partition folder, damaged or forged: the file is named, and nothing that it promises is believed."""

import os

import numpy as np
import pytest
from fuzzing import no_hang

from distgnn.errors import InputError, PartitionFormatError
from distgnn.partition import load_part, read_manifest
from distgnn.partition.core.local_graph import BLOCKS

from ..folders import replace_array, resign

ARRAY_FILES = [f"{name}_{kind}" for name in BLOCKS for kind in ("indptr", "indices")]
ARRAY_FILES += ["global_ids", "in_degrees", "halo_counts", "arc_ids", "edge_weight", "broadcast_rows", "reduce_indptr"]
ARRAY_FILES += ["edge_feats", "edge_types", "node_types"]
ARRAY_FILES += ["feats_indptr", "feats_indices", "feats_data", "labels", "train_mask", "test_mask"]


def test_every_damaged_file_is_named(folder):
    for name in ARRAY_FILES:
        path = folder / "part-0" / f"{name}.npy"
        good = path.read_bytes()
        last = good[:-1] + bytes([good[-1] ^ 1])
        for damage in (good[:-1], good + b"\0", good[:20], b"", last, b"\x93NUMPY" + good[:40]):
            path.write_bytes(damage)
            with pytest.raises(PartitionFormatError, match=f"{name}.npy: "):
                load_part(folder, 0)
        path.unlink()
        with pytest.raises(PartitionFormatError, match=f"{name}.npy: missing"):
            load_part(folder, 0)
        path.write_bytes(good)


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
        ("feats_indices", lambda a: a + 6, "columns must lie in 0 to"),
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
        ('{"format_version": 99}', "format version 99 is not 1: cut the graph again"),
        ('{"format_version": true}', "no format_version"),
        ('{"format_version": 1}', "its checksum is wrong"),
    ],
)
def test_not_a_manifest(text, message, folder):
    (folder / "partition.json").write_text(text)
    with pytest.raises(PartitionFormatError, match=message):
        load_part(folder, 0)


@pytest.mark.parametrize(
    "change",
    [
        lambda m: m.update(num_nodes=10**400),
        lambda m: m.update(seconds=10**400),
        lambda m: m.update(peak_rss_bytes=float("inf")),
        lambda m: m.update(capacities=[10**400, 1, 1]),
        lambda m: m["graph"].update(num_feats=2**63),
        lambda m: m["pair_rows"][0].__setitem__(1, 10**400),
        lambda m: m["parts"][0].update(train=2**64),
    ],
)
def test_numbers_that_no_graph_has_are_refused(change, folder):
    resign(folder, change)
    with pytest.raises(PartitionFormatError, match=r"partition\.json: .* missing or wrong"):
        read_manifest(folder)


def test_a_pipe_of_the_size_that_the_manifest_says_is_refused(folder):
    path = folder / "part-0" / "labels.npy"
    path.unlink()
    os.mkfifo(path)
    resign(folder, lambda m: m["parts"][0]["files"]["labels"].update(bytes=0))
    with no_hang(), pytest.raises(PartitionFormatError, match=r"labels\.npy: not a regular file"):
        load_part(folder, 0)


def test_not_a_partition_folder(tmp_path, folder):
    with pytest.raises(PartitionFormatError, match="no such folder"):
        read_manifest(tmp_path / "nowhere")
    with pytest.raises(PartitionFormatError, match=r"has no partition\.json"):
        read_manifest(tmp_path)
    with pytest.raises(InputError, match="parts 0 to 2, no part 3"):
        load_part(folder, 3)
