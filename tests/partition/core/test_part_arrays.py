"""Every array of a part: damaged bytes and impossible contents are named by their file."""

import os

import numpy as np
import pytest
from fuzzing import no_hang

from distgnn.errors import PartitionFormatError
from distgnn.partition import load_part
from distgnn.partition.core.local_graph import BLOCKS

from ..folders import replace_array, resign

ARRAY_FILES = [f"{name}_{kind}" for name in BLOCKS for kind in ("indptr", "indices")]
ARRAY_FILES += ["global_ids", "in_degrees", "halo_counts", "arc_ids", "edge_weight", "broadcast_rows", "reduce_indptr"]
ARRAY_FILES += ["edge_feats", "edge_types", "node_types", "labels", "train_mask", "test_mask", "cluster_places"]
ARRAY_FILES += ["feats_indptr", "feats_indices", "feats_data"]


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
        ("cluster_places", lambda a: a + 35, "places must lie in 0 to"),
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


def test_a_pipe_of_the_size_that_the_manifest_says_is_refused(folder):
    path = folder / "part-0" / "labels.npy"
    path.unlink()
    os.mkfifo(path)
    resign(folder, lambda m: m["parts"][0]["files"]["labels"].update(bytes=0))
    with no_hang(), pytest.raises(PartitionFormatError, match=r"labels\.npy: not a regular file"):
        load_part(folder, 0)
