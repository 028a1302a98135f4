"""Sums and means against arc-by-arc numpy, and their laws. Blocks of sources change the order of a sum alone."""

import numpy as np
import pytest

from distgnn.kernels import Tuning, block_csr, block_rows, csr_from_edges, empty_rows, spmm, spmm_blocked, transpose_csr
from distgnn.kernels.check import reference
from distgnn.kernels.graph import aggregate
from distgnn.kernels.runtime import arrays

from ..graphs import NAMES, awkward, close, rows_of


@pytest.mark.parametrize("reduce", ["sum", "mean"])
@pytest.mark.parametrize("name", NAMES)
def test_graphs(name, reduce, num_threads):
    indptr, indices, sources = awkward(name)
    feats = rows_of(sources, 37)
    close(spmm(indptr, indices, feats, reduce), reference.spmm(indptr, indices, feats, reduce))
    assert spmm(indptr, indices, feats[:, :0].copy(), reduce).shape == (len(indptr) - 1, 0)


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


@pytest.mark.parametrize("reduce", ["sum", "mean"])
def test_scales_and_weights(reduce, num_threads):
    indptr, indices, sources = awkward("random")
    feats, ids = rows_of(sources, 37), np.random.default_rng(1).permutation(len(indices))
    options = {"edge_weight": rows_of(len(ids), 1)[:, 0], "edge_ids": ids, "source_scale": rows_of(sources, 1)[:, 0]}
    options["target_scale"] = rows_of(len(indptr) - 1, 1, seed=3)[:, 0]
    close(spmm(indptr, indices, feats, reduce, **options), reference.spmm(indptr, indices, feats, reduce, **options))


def test_bfloat16_out_is_rounded_to_nearest():
    indptr, indices, sources = awkward("random")
    bits = reference.to_bfloat16(rows_of(sources, 37))
    out = spmm(indptr, indices, bits, out=np.zeros((len(indptr) - 1, 37), np.uint16))
    np.testing.assert_array_equal(out, reference.to_bfloat16(spmm(indptr, indices, bits)))


def test_weights_per_head(num_threads):
    heads, width = 4, 9
    indptr, indices, sources = awkward("random")
    feats = rows_of(sources, heads * width).reshape(sources, heads, width)
    options = {"edge_weight": rows_of(len(indices), heads, seed=4), "source_scale": rows_of(sources, 1)[:, 0]}
    close(spmm(indptr, indices, feats, **options), reference.spmm(indptr, indices, feats, **options))
    flat = spmm(indptr, indices, feats.reshape(sources, -1), **options)
    np.testing.assert_array_equal(flat.reshape(-1, heads, width), spmm(indptr, indices, feats, **options))


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


def test_transpose_is_the_adjoint():
    """⟨A x, y⟩ = ⟨x, Aᵀ y⟩ with edge weights found through `positions`."""
    generator = np.random.default_rng(5)
    src, dst = (generator.integers(0, count, 300, np.int32) for count in (50, 20))
    indptr, indices, edge_ids = csr_from_edges(src, dst, 20)
    backward, targets, positions = transpose_csr(indptr, indices, 50)
    weight, x, y = rows_of(300, 1, np.float64)[:, 0], rows_of(50, 37, np.float64), rows_of(20, 37, np.float64, 2)
    forward = spmm(indptr, indices, x, edge_weight=weight, edge_ids=edge_ids)
    adjoint = spmm(backward, targets, y, edge_weight=weight, edge_ids=edge_ids[positions])
    np.testing.assert_allclose(np.vdot(forward, y), np.vdot(x, adjoint), rtol=1e-12)


@pytest.mark.parametrize("size", [1, 37, 1000])
def test_blocks_add_up(size):
    generator = np.random.default_rng(0)
    src, dst = (generator.integers(0, count, 700, np.int32) for count in (90, 40))
    indptr, indices, _ = csr_from_edges(src, dst, 41)
    graph, feats, weight = block_csr(indptr, indices, 90, size), rows_of(90, 37), rows_of(700, 1)[:, 0]
    expected = reference.spmm(indptr, indices, feats, edge_weight=weight)
    close(spmm_blocked(graph, feats, weight), expected)
    close(spmm_blocked(graph, feats, weight, piece=slice(5, 20)), expected[5:20])


def test_blocks_only_where_rows_have_many_arcs_in_each():
    size = (1 << 24) // 512
    assert block_rows(60_000, 60_000, 15_000_000, 512) == size  # 2 blocks, 250 arcs a row
    assert block_rows(60_000, size, 15_000_000, 512) == 0  # one block
    assert block_rows(500_000, 500_000, 20_000_000, 512) == 0  # 16 blocks, 40 arcs a row
