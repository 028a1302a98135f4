"""Arrays of all ranks in pieces: any length, none, shapes of more axes, on one rank and on all."""

import numpy as np
import pytest

from distgnn.comm import gather_arrays, sums


@pytest.mark.mpi(1, 3)
@pytest.mark.parametrize("piece", [7, 64, 1 << 20])
def test_every_ranks_array_arrives_whole(comm, monkeypatch, piece):
    monkeypatch.setattr(sums, "LARGEST_PIECE", piece)
    for dtype, shape in ((np.float32, (5,)), (np.int64, ()), (bool, (2, 3)), (np.float64, (0,))):
        lengths = [0 if rank == 1 else 4 + rank for rank in range(comm.size)]
        sizes = [length * int(np.prod(shape)) for length in lengths]
        flat = [(np.arange(size) % 5 + rank).astype(dtype) for rank, size in enumerate(sizes)]
        everyone = [array.reshape(length, *shape) for array, length in zip(flat, lengths, strict=True)]
        for root in (0, comm.size - 1, None):
            found = gather_arrays(comm, everyone[comm.rank], root)
            if root in (None, comm.rank):
                assert all(a.dtype == b.dtype and np.array_equal(a, b) for a, b in zip(found, everyone, strict=True))
            else:
                assert found is None
