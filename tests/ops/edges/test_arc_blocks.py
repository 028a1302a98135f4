"""Rows of arcs that are made a block at a time: functions and reductions give what they give on whole rows."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from distgnn.errors import InputError
from distgnn.ops.edges import arc_blocks
from distgnn.ops.edges.arc_blocks import ArcBlocks, leaf, partial_rows, whole_rows
from distgnn.rows import RowTensor  # noqa: F401 - its functions are those that are recorded

ARCS, WEIGHT, BESIDE = 50, torch.linspace(-1, 1, 6).view(3, 2), torch.linspace(0, 1, 50).view(50, 1, 1)
RECORDED = {
    "elementwise": lambda x: (x * 2 - BESIDE).relu(),
    "linear": lambda x: F.linear(x, WEIGHT),
    "matmul": lambda x: x @ WEIGHT.T,
    "side by side": lambda x: torch.cat([x, BESIDE.expand(50, 4, 1)], 2),
    "behind one another": lambda x: torch.cat([x, 3 * x]),
    "within rows": lambda x: x.transpose(1, 2).flatten(1).softmax(1)[:, 1:3].sum(1),
    "pieces": lambda x: x.chunk(2, 1)[1],
    "some arcs": lambda x: x[torch.arange(0, 50, 3)],
    "in place": lambda x: (x + 0).mul_(BESIDE).add_(1),
    "cast": lambda x: x.double().view(50, 8),
}
WHOLE = {"over arcs": lambda x: x.sum(0), "sorted": lambda x: x.sort(0).values, "first": lambda x: x[0]}


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(arc_blocks, "BLOCK_ARCS", 7)
    with torch.no_grad():
        yield


@pytest.mark.parametrize("name", [*RECORDED, *WHOLE])
def test_a_function_gives_what_it_gives_on_whole_rows(name):
    rows, function = torch.randn(ARCS, 4, 2, generator=torch.Generator().manual_seed(0)), (RECORDED | WHOLE)[name]
    found = function(leaf(rows))
    assert isinstance(found, ArcBlocks) == (name in RECORDED)
    torch.testing.assert_close(whole_rows(found), function(rows))


def test_reductions_and_rows_that_were_written_to():
    """Of copies without arcs, and of one with more arcs than a block has."""
    rows, order = torch.randn(ARCS, 3), np.random.default_rng(0).permutation(ARCS)
    group = SimpleNamespace(indptr=np.array([0, 4, 4, 30, 41, ARCS]), arcs=order)
    for reduce, of_numpy in (("sum", np.add), ("max", np.maximum)):
        found, finite = partial_rows(group, leaf(rows) * 2, reduce)
        expected = [of_numpy.reduce(2 * rows.numpy()[some], 0, initial=-np.inf if reduce == "max" else 0)
                    for some in np.split(order, group.indptr[1:-1])]  # fmt: skip
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
        assert finite
    made = leaf(rows) + 1
    rows.mul_(2)
    with pytest.raises(InputError, match="written to in place after a message"):
        whole_rows(made)
