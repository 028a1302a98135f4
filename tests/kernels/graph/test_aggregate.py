"""spmm against arc-by-arc numpy, and its laws."""

import numpy as np
import pytest

from distgnn.kernels import Tuning, csr_from_edges, empty_rows, spmm, transpose_csr
from distgnn.kernels.check import reference
from distgnn.kernels.graph import aggregate
from distgnn.kernels.runtime import arrays

from ..graphs import NAMES, awkward, close, rows_of


@pytest.mark.parametrize("reduce", ["sum", "mean", "max", "min"])
@pytest.mark.parametrize("name", NAMES)
def test_graphs(name, reduce, num_threads):
    indptr, indices, sources = awkward(name)
    feats = rows_of(sources, 37)
    _same(spmm(indptr, indices, feats, reduce), reference.spmm(indptr, indices, feats, reduce))
    assert _tuple(spmm(indptr, indices, feats[:, :0].copy(), reduce))[0].shape == (len(indptr) - 1, 0)


@pytest.mark.parametrize(("width", "dtype", "heads"), [(320, np.float32, 1), (8, np.float64, 1), (48, np.float32, 2)])
def test_results_written_past_the_caches_have_the_same_bits(width, dtype, heads, num_threads, monkeypatch):
    """Of 48 columns each head has a vector that was moved back: it lies at no multiple of its size."""
    indptr, indices, sources = awkward("random")
    weight = None if heads == 1 else rows_of(len(indices), heads)
    arguments = indptr, indices, rows_of(sources, width, dtype), "mean", weight
    plain, asked = spmm(*arguments), []
    monkeypatch.setattr(arrays, "held_tuning", lambda: Tuning(past_caches=0))
    run = aggregate.run
    monkeypatch.setattr(aggregate, "run", lambda *given: (asked.append(given[-1]), run(*given)))
    np.testing.assert_array_equal(spmm(*arguments), plain)
    unaligned = empty_rows((len(plain) * width + 1,), dtype)[1:].reshape(plain.shape)
    np.testing.assert_array_equal(spmm(*arguments, out=unaligned), plain)
    spmm(*arguments, out=plain, accumulate=True)
    assert (asked[0], *asked[-2:]) == (True, False, False)


@pytest.mark.parametrize("reduce", ["sum", "mean", "max", "min"])
def test_scales_and_weights(reduce, num_threads):
    indptr, indices, sources = awkward("random")
    feats, ids = rows_of(sources, 37), np.random.default_rng(1).permutation(len(indices))
    options = {"edge_weight": rows_of(len(ids), 1)[:, 0], "edge_ids": ids, "source_scale": rows_of(sources, 1)[:, 0]}
    if reduce in ("sum", "mean"):
        options["target_scale"] = rows_of(len(indptr) - 1, 1, seed=3)[:, 0]
    _same(spmm(indptr, indices, feats, reduce, **options), reference.spmm(indptr, indices, feats, reduce, **options))


def test_bfloat16_out_is_rounded_to_nearest():
    indptr, indices, sources = awkward("random")
    bits = reference.to_bfloat16(rows_of(sources, 37))
    out = spmm(indptr, indices, bits, out=np.zeros((len(indptr) - 1, 37), np.uint16))
    np.testing.assert_array_equal(out, reference.to_bfloat16(spmm(indptr, indices, bits)))


def test_extremes_prefer_the_smallest_edge_id():
    indptr, indices = np.array([0, 4]), np.zeros(4, np.int32)
    feats, ids = np.ones((1, 37), np.float32), np.array([7, 2, 9, 1])
    assert (spmm(indptr, indices, feats, "max")[1] == 0).all()
    assert (spmm(indptr, indices, feats, "min", edge_ids=ids)[1] == 3).all()


def test_extremes_of_rows_without_arcs():
    indptr, indices, sources = awkward("isolated")
    partial, _ = spmm(indptr, indices, rows_of(sources, 37), "min", keep_inf=True)
    empty = np.diff(indptr) == 0
    assert np.isposinf(partial[empty]).all() and np.isfinite(partial[~empty]).all()


def test_weights_per_head(num_threads):
    heads, width = 4, 9
    indptr, indices, sources = awkward("random")
    feats = rows_of(sources, heads * width).reshape(sources, heads, width)
    options = {"edge_weight": rows_of(len(indices), heads, seed=4), "source_scale": rows_of(sources, 1)[:, 0]}
    close(spmm(indptr, indices, feats, **options), reference.spmm(indptr, indices, feats, **options))
    flat = spmm(indptr, indices, feats.reshape(sources, -1), **options)
    np.testing.assert_array_equal(flat.reshape(-1, heads, width), spmm(indptr, indices, feats, **options))


def test_mean_by_a_given_degree():
    indptr, indices, sources = awkward("random")
    degree = np.arange(len(indptr) - 1) % 5
    feats = rows_of(sources, 37)
    got = spmm(indptr, indices, feats, "mean", degree=degree)
    close(got, reference.spmm(indptr, indices, feats, "mean", degree=degree))
    assert not got[degree == 0].any()


def test_accumulate_adds_to_out_in_place():
    indptr, indices, sources = awkward("random")
    feats, before = rows_of(sources, 37), rows_of(len(indptr) - 1, 37, seed=2)
    out = before.copy()
    assert spmm(indptr, indices, feats, out=out, accumulate=True) is out
    close(out, before + reference.spmm(indptr, indices, feats))


def test_a_slice_of_indptr_is_some_rows_of_the_whole():
    indptr, indices, sources = awkward("random")
    feats = rows_of(sources, 37)
    np.testing.assert_array_equal(spmm(indptr[10:31], indices, feats), spmm(indptr, indices, feats)[10:30])
    _, winner = spmm(indptr[10:31], indices, feats, "max")
    np.testing.assert_array_equal(winner, spmm(indptr, indices, feats, "max")[1][10:30])


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


def test_transpose_is_the_adjoint():
    """⟨A x, y⟩ = ⟨x, Aᵀ y⟩ with edge weights found through `positions`."""
    generator = np.random.default_rng(5)
    src, dst = (generator.integers(0, count, 300, np.int32) for count in (50, 20))
    indptr, indices, edge_ids = csr_from_edges(src, dst, 20)
    backward, targets, positions = transpose_csr(indptr, indices, 50)
    weight, x, y = rows_of(300, 1, np.float64)[:, 0], rows_of(50, 7, np.float64), rows_of(20, 7, np.float64, 2)
    forward = spmm(indptr, indices, x, edge_weight=weight, edge_ids=edge_ids)
    adjoint = spmm(backward, targets, y, edge_weight=weight, edge_ids=edge_ids[positions])
    np.testing.assert_allclose(np.vdot(forward, y), np.vdot(x, adjoint), rtol=1e-12)


@pytest.mark.parametrize(
    "change",
    [
        {"feats": np.zeros(50, np.float32)},
        {"feats": np.zeros((50, 4), np.float16)},
        {"reduce": "median"},
        {"indices": np.zeros(400)},
        {"edge_weight": np.zeros((400, 3))},
        {"edge_weight": np.zeros((400, 2)), "reduce": "max"},
        {"out": np.zeros((60, 5), np.float32)},
        {"out": np.zeros((60, 8), np.float32)[:, ::2]},
        {"source_scale": np.zeros(3)},
        {"degree": np.zeros(3), "reduce": "mean"},
        {"accumulate": True},
        {"accumulate": True, "reduce": "max"},
    ],
)
def test_bad_arguments(change):
    indptr, indices, sources = awkward("random")
    with pytest.raises(ValueError):
        spmm(**{"indptr": indptr, "indices": indices, "feats": rows_of(sources, 4), **change})


def _tuple(result):
    return result if isinstance(result, tuple) else (result,)


def _same(got, expected):
    got, expected = _tuple(got), _tuple(expected)
    close(got[0], expected[0])
    if len(got) == 2:
        np.testing.assert_array_equal(got[1], expected[1])
