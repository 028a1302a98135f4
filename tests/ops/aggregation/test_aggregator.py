import numpy as np
import pytest

from distgnn import kernels
from distgnn.ops.aggregation.aggregator import Arcs, Block


@pytest.mark.parametrize(("hub", "expected"), [(0, 8), (1000, 3), (9000, 1)])
def test_pieces_are_not_smaller_than_a_hub_lets_all_threads_share(monkeypatch, hub, expected):
    monkeypatch.setattr(kernels, "get_num_threads", lambda: 4)
    degrees = np.full(4000, 3)
    degrees[17] += hub
    indptr = np.concatenate([[0], np.cumsum(degrees)])
    block = Block(indptr, np.zeros(indptr[-1], np.int32), 0, None, kernels.Tuning())
    pieces = Arcs(block, block, block, block).pieces
    assert len(pieces) == expected
    assert [row for piece in pieces for row in range(piece.start, piece.stop)] == list(range(4000))
