"""The gradient of an attention layer's input, written over what it is made of."""

from types import SimpleNamespace

import pytest
import torch

from distgnn import ops
from distgnn.kernels import Tuning
from distgnn.ops.attention import gradients
from distgnn.ops.attention.gradients import ThroughScores
from distgnn.ops.rowwise.products import sum_of_products


@pytest.mark.parametrize("num", [0, 1, 5000])
@pytest.mark.parametrize("columns", [4, 8, 16, 17])  # of a width of 8: it fits up to 16
@pytest.mark.parametrize("own_products", [True, False])
def test_the_inputs_gradient_in_place(num, columns, own_products, monkeypatch):
    """Threads may write rows in any order, so nothing that a product reads lies where it writes (but for one row)."""
    tuning = Tuning(own_products=own_products)
    graph = SimpleNamespace(tuning=tuning, buffers=ops.Buffers(), factor_recorder=None)
    torch.manual_seed(0)
    shapes = (num, columns), (columns, 8), (2, 8), (2 * num, 8), (num, 8)
    feats, weight, attn, together, grad_scores = (torch.randn(shape) for shape in shapes)
    through = ThroughScores(graph, feats, weight, attn)
    expected = through.of_feats(together[num:].clone(), grad_scores)

    def product(graph, pairs, over):
        if over is not None and len(over) > 1 and columns != 8:
            over.fill_(torch.nan)
        return sum_of_products(graph, pairs, over)

    monkeypatch.setattr(gradients, "sum_of_products", product)
    got = through.of_feats(together[num:], grad_scores, together)
    torch.testing.assert_close(got, expected, **({"rtol": 0, "atol": 0} if own_products else {}))
    if columns <= 16 and num:
        assert got.untyped_storage().data_ptr() == together.untyped_storage().data_ptr()
