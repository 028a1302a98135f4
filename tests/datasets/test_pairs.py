import numpy as np
import pytest

from distgnn.datasets import pairs


@pytest.mark.parametrize("block", [3, 1 << 22])
@pytest.mark.parametrize("largest", [3, 100, 10**6, 2**62])
def test_repeated_edges_are_all_but_the_first(largest, block, monkeypatch):
    monkeypatch.setattr(pairs, "BLOCK", block)
    rng = np.random.default_rng(0)
    for num_rows in (0, 1, 2, 50, 1000):
        keys = rng.integers(0, largest, num_rows)
        seen, expected = set(), []
        for row, key in enumerate(keys.tolist()):
            if key in seen:
                expected.append(row)
            seen.add(key)
        assert pairs.repeated_edges(keys).tolist() == expected


def test_keys_do_not_overflow():
    ends = np.array([2**31 - 2], dtype=np.int32)
    assert pairs.pair_keys(ends, ends, 2**31 - 1).tolist() == [(2**31 - 2) * (2**31 - 1) + 2**31 - 2]
    assert pairs.undirected_keys(ends, ends - 1, 2**31 - 1).tolist() == [(2**31 - 3) * (2**31 - 1) + 2**31 - 2]
