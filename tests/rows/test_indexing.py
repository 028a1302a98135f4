"""Rows by mask, id and range, read and written: value and every gradient of whole tensors, or one line."""

import pytest
import torch
from row_scenes import CLASSES, IDS, PERM, D, N, T, same_on_rows, scenes


@pytest.mark.mpi(1, 3)
def test_value_and_gradients(comm):
    functions = [
        lambda s, x: torch.index_select(x, 1, torch.tensor([1, 4])),
        lambda s, x: x[s.y],
        lambda s, x: torch.masked_select(x, s.m[:, None]),
        lambda s, x: x.index_put((IDS[:3],), x[IDS[3:]]),
        lambda s, x: torch.zeros(N, CLASSES).index_put_((PERM[:9], s.y[PERM[:9]]), torch.tensor(1.0)),
        lambda s, x: torch.zeros(N, CLASSES).scatter_(1, s.y[:, None], 1.0),
        lambda s, x: torch.zeros(CLASSES, CLASSES).index_put_((s.y, s.y[PERM]), torch.tensor(1.0), accumulate=True),
    ]
    same_on_rows(comm, functions)


def written(*writes):
    def write(s, x):
        x = x.clone()
        for one in writes:
            one(s, x)
        return x

    return write


@pytest.mark.mpi(1, 3)
def test_what_is_written_and_its_gradients(comm):
    functions = [
        written(lambda s, x: x.__setitem__(IDS, T[IDS])),
        written(lambda s, x: x.__setitem__((slice(None), 1), T[:, 1]), lambda s, x: x.__setitem__((s.m, 2), 5.0)),
        written(lambda s, x: x.__setitem__(s.m, T[:20]), lambda s, x: x.__setitem__(~s.m, x[~s.m] * 2)),
        # feature masks of GRACE, BGRL, CCA-SSG
        written(lambda s, x: x.__setitem__((slice(None), torch.arange(D) % 3 == 0), 0)),
        written(lambda s, x: x.__setitem__((slice(None), [1, 4]), T[:, :2])),
        written(lambda s, x: x.__setitem__((slice(3, 30), torch.tensor([0, 2])), x[3:30, 6:])),
        written(
            lambda s, x: x.__setitem__((7, [0, 2]), T[0, :2]),
            lambda s, x: x.__setitem__((torch.tensor([9]), [1, 2]), T[0, :2]),
        ),
        written(lambda s, x: x.__setitem__((IDS[:3], s.y[IDS[:3]]), 1.0)),  # labels as features
        written(
            lambda s, x: x.__setitem__((s.m, s.y[s.m]), T[:20, 0]),
            lambda s, x: x.__setitem__((~s.m, s.y[~s.m]), x[~s.m, 5]),
        ),
        written(lambda s, x: x.__setitem__((s.m.nonzero().view(-1), 2), T[:20, 1])),
        written(lambda s, x: x.index_put_((IDS,), T[:6], accumulate=True)),
        written(
            lambda s, x: x.index_put_((s.y, s.y), x[:, 0], accumulate=True),
            lambda s, x: x.index_add_(0, IDS, T[:6], alpha=2),
        ),
        written(lambda s, x: x[5:10].zero_(), lambda s, x: x[2:30:3, 1:3].fill_(2.0)),  # ranges are views
        written(lambda s, x: x[3].mul_(5.0), lambda s, x: x[-1].add_(1)),
        written(lambda s, x: x.__setitem__(slice(5, 10), x[5:10].add_(T[5:10]))),  # what x[5:10] += t does
    ]
    same_on_rows(comm, functions)


@pytest.mark.mpi(3)
def test_an_id_beyond_the_rows_is_refused(comm):
    with pytest.raises(IndexError, match="index 41 is out of bounds for 41 rows"):
        scenes(comm)[1].x[torch.tensor([41])]
