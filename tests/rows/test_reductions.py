"""Losses and norms of rows, extremes with numbers that are not finite: value and every gradient of all ranks' rows."""

import pytest
import torch
import torch.nn.functional as F
from row_scenes import CLASS_WEIGHT, CLASSES, ODD, D, T, same_on_rows


@pytest.mark.mpi(1, 3)
def test_value_and_gradients(comm):
    functions = [
        lambda s, x: x.max(0).indices,
        lambda s, x: x.argmax(),
        lambda s, x: torch.exp(-(x + ODD)[:, 1:3].amax(0)),
        lambda s, x: x.new_zeros(CLASSES, D).scatter_reduce(
            0, s.y[:, None].expand(-1, D), x, "amax", include_self=False
        ),
        lambda s, x: s.bn(x),
        lambda s, x: s.bn(x[s.m]),
        lambda s, x: s.bn(x[:17]),
        lambda s, x: F.instance_norm(x.t()[None])[0].t(),
        lambda s, x: F.cross_entropy(x[:, :CLASSES], s.y, weight=CLASS_WEIGHT, label_smoothing=0.1),
        lambda s, x: F.cross_entropy(x[s.m][:, :CLASSES], s.y[s.m], label_smoothing=0.1),
        lambda s, x: F.cross_entropy(x[:, :CLASSES], s.y, ignore_index=2, label_smoothing=0.1),
        lambda s, x: F.cross_entropy(x, T.softmax(1), label_smoothing=0.1),
        lambda s, x: F.binary_cross_entropy_with_logits(
            x[:, :CLASSES], F.one_hot(s.y, CLASSES).double(), pos_weight=CLASS_WEIGHT
        ),
    ]
    same_on_rows(comm, functions)


def grouped(make, how):
    def reduce(s, x):
        src = make(x.detach())
        out = torch.full((CLASSES + 2, D), 3, dtype=src.dtype)
        return out.scatter_reduce(0, s.y[:, None].expand(-1, D), src, how, include_self=False)

    return reduce


@pytest.mark.mpi(1, 3)
def test_extremes_of_numbers_that_are_not_finite_or_are_whole(comm):
    """NaN wins on every rank; a group's numbers keep their type and their last bit."""
    makes = (lambda x: x + ODD, lambda x: (100 * x).long(), lambda x: torch.ones_like(x) / 3)
    functions = [grouped(make, how) for make in makes for how in ("sum", "mean", "amax", "amin")]
    functions += [
        lambda s, x: (x.detach() + ODD).amax(0),
        lambda s, x: (x.detach() + ODD).amin(),
        lambda s, x: (x.detach() + ODD).aminmax().min,
        lambda s, x: (x.detach() + ODD).max(0).values,
        lambda s, x: (x.detach() + ODD).argmax(0),
        lambda s, x: (x.detach() + ODD).max(),
    ]
    same_on_rows(comm, functions, rtol=1e-12, atol=0)
