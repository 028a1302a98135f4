"""The border of kernels: arrays of all kinds are taken, and others refused."""

import numpy as np
import pytest

from distgnn.kernels import spmm

from ..graphs import awkward, rows_of


def test_index_widths_agree():
    indptr, indices, sources = awkward("hub")
    feats = rows_of(sources, 37)
    wide = spmm(indptr, indices.astype(np.int64), feats)
    np.testing.assert_array_equal(spmm(indptr.astype(np.int32), indices, feats), wide)


def test_read_only_memory_maps(tmp_path):
    indptr, indices, sources = awkward("random")
    feats = rows_of(sources, 37)
    for name, array in (("indptr", indptr), ("indices", indices), ("feats", feats)):
        np.save(tmp_path / name, array)
    maps = [np.load(tmp_path / f"{name}.npy", mmap_mode="r") for name in ("indptr", "indices", "feats")]
    np.testing.assert_array_equal(spmm(*maps), spmm(indptr, indices, feats))


@pytest.mark.parametrize(
    "change",
    [
        {"feats": np.zeros(50, np.float32)},
        {"feats": np.zeros((50, 4), np.float16)},
        {"reduce": "median"},
        {"indices": np.zeros(400)},
        {"edge_weight": np.zeros((400, 3))},
        {"edge_weight": np.zeros(400), "reduce": "max"},
        {"edge_ids": np.arange(400), "reduce": "max"},
        {"out": np.zeros((60, 5), np.float32)},
        {"out": np.zeros((60, 8), np.float32)[:, ::2]},
        {"source_scale": np.zeros(3)},
        {"accumulate": True},
        {"accumulate": True, "reduce": "max"},
    ],
)
def test_bad_arguments(change):
    indptr, indices, sources = awkward("random")
    with pytest.raises(ValueError):
        spmm(**{"indptr": indptr, "indices": indices, "feats": rows_of(sources, 4), **change})
