"""What parts have of a block's members, counted by several threads that share large groups."""

import itertools

import numpy as np
import pytest

from distgnn.kernels.runtime.threads import run
from distgnn.partition.refinement import groups as grouping
from distgnn.partition.refinement.groups import Groups, cut_blocks, without_gaps
from distgnn.partition.refinement.replica_table import empty_table, num_edges_in, vertex_ranges

from ..graphs import groups_with

VERTICES, PARTS = 300, 9


@pytest.fixture(params=[1, 2, 5])
def threads(request, set_num_threads, monkeypatch):
    monkeypatch.setattr(grouping, "ALONE", 0)
    set_num_threads(request.param)
    return request.param


@pytest.fixture
def made():
    """Groups of 0 to 250 members, those with an even number in a part; how often a vertex is in a part."""
    rng = np.random.default_rng(1)
    sizes = [250, 0, 1, 3, 120, 0, 2, 17, 90, 1, 1]
    groups = groups_with(*(rng.choice(VERTICES, size, replace=False) for size in sizes), sizes=sizes)
    part = np.where(np.arange(len(sizes)) % 2 == 0, rng.integers(0, PARTS, len(sizes)), -1).astype(np.int16)
    inside = np.zeros((VERTICES, PARTS), dtype=np.int64)
    for c in range(0, len(sizes), 2):
        inside[groups.members[groups.indptr[c] : groups.indptr[c + 1]], part[c]] += 1
    degrees = np.bincount(groups.members, minlength=VERTICES).astype(np.int32)
    return groups, part, inside, degrees


def add(chosen, groups, part, table):
    run(grouping.add_groups, vertex_ranges(table), np.array(chosen, dtype=np.int32), groups, part, table, True)


def test_a_block_is_counted_as_group_after_group(made, threads, monkeypatch):
    monkeypatch.setattr("distgnn.kernels.runtime.threads.FEW_EDGES", 0)
    groups, part, inside, degrees = made
    table = empty_table(degrees, PARTS)
    add([4, 0, 2, 6, 8, 10], groups, part, table)
    assert [[num_edges_in(table, v, p) for p in range(PARTS)] for v in range(VERTICES)] == inside.tolist()
    chosen = np.array([5, 3, 0, 4, 1, 7, 9], dtype=np.int32)
    expected = []
    for c in chosen:
        without = inside[groups.members[groups.indptr[c] : groups.indptr[c + 1]]].copy()
        if part[c] >= 0:
            without[:, part[c]] -= 1
        expected.append((without > 0).sum(axis=0).tolist())
    assert grouping.count_block(chosen, groups, part, table).tolist() == expected


@pytest.mark.parametrize(("most", "size"), [(1, 1), (200, 50), (10**4, 300), (10**9, 300)])
def test_numbers_without_gaps_are_in_the_order_of_keys(most, size):
    """Marked, and sorted where keys are far apart."""
    keys = np.random.default_rng(size).integers(0, most, size)
    numbers, num_keys = without_gaps(keys)
    values, expected = np.unique(keys, return_inverse=True)
    assert num_keys == len(values) and numbers.dtype == np.int32
    np.testing.assert_array_equal(numbers, expected)
    assert without_gaps(keys[:0])[1] == 0


@pytest.mark.parametrize("size", [1, 12, 200, 10**4])
@pytest.mark.parametrize("chosen", [0, 1, 700, 5000, 400_000])
def test_blocks_of_groups_end_with_enough_of_them_or_of_their_members(chosen, size):
    sizes = np.random.default_rng(size).integers(1, 2 * size, 5000)
    indptr = np.concatenate([[0], np.cumsum(sizes)])
    groups = Groups(indptr, np.empty(0, np.int32), sizes.astype(float), np.empty(0, np.uint16))
    ids = np.random.default_rng(0).integers(0, 5000, chosen).astype(np.int32)
    bounds = cut_blocks(ids, groups)
    assert bounds[0] == 0 and bounds[-1] == chosen
    fewest = max(grouping.FEWEST_AT_ONCE, chosen // 256)
    for first, end in itertools.pairwise(bounds):
        members = np.cumsum(sizes[ids[first:end]])
        enough = max(fewest, min(int(np.searchsorted(members, grouping.ENOUGH_MEMBERS)) + 1, grouping.MOST_AT_ONCE))
        assert end - first == min(enough, chosen - first)
