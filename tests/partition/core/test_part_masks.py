"""Sets of parts as bits, against bool arrays: for any number of threads, and of parts beyond a word."""

import numpy as np
import pytest

from distgnn.partition.core.part_masks import count_copies, count_parts, empty_mask, mark_arcs


@pytest.mark.parametrize("num_parts", [3, 64, 65, 130])
@pytest.mark.parametrize("threads", [1, 5])
def test_masks_hold_the_parts_of_arcs(num_parts, threads, set_num_threads, monkeypatch):
    monkeypatch.setattr("distgnn.partition.core.part_masks.FEW_EDGES", 0)
    set_num_threads(threads)
    rng = np.random.default_rng(num_parts)
    sources, targets = rng.integers(0, 40, (2, 900)).astype(np.int32)
    parts = rng.integers(0, num_parts, 900).astype(np.int16)
    kept = sources != targets
    expected = np.zeros((2, 40, num_parts), dtype=bool)
    expected[0, sources[kept], parts[kept]] = expected[1, targets[kept], parts[kept]] = True
    masks = empty_mask(40, num_parts), empty_mask(40, num_parts)
    mark_arcs(sources, targets, parts, True, *masks)
    for mask, held in zip(masks, expected, strict=True):
        bits = np.unpackbits(mask.view(np.uint8), axis=1, bitorder="little")
        np.testing.assert_array_equal(bits[:, :num_parts], held)
    np.testing.assert_array_equal(count_parts(*masks, num_parts), expected.any(axis=0).sum(axis=0))
    np.testing.assert_array_equal(count_copies(*masks), expected.any(axis=0).sum(axis=1))
