"""Weight gradients of bfloat16 rows: sums in float32 over blocks of rows, whichever of the two is turned."""

from types import SimpleNamespace

import pytest
import torch

from distgnn.ops.dense import products


@pytest.mark.parametrize("widths", [(3, 7), (7, 3), (5, 5), (602, 8)])
def test_weight_gradients_of_bfloat16_rows(monkeypatch, widths):
    """Sums of 16 whole numbers up to 8 are whole and below 128: exact in bfloat16, so equality is to the last bit."""
    monkeypatch.setattr(products, "BLOCK_ROWS", 16)
    generator = torch.Generator().manual_seed(0)
    rows, grads = (torch.randint(-8, 9, (37, width), generator=generator).bfloat16() for width in widths)
    rows = rows.clamp(0, 1)
    found = products.weight_gradient(SimpleNamespace(tuning=SimpleNamespace(own_products=True)), rows, grads)
    assert found.dtype == torch.float32 and found.shape == widths and found.is_contiguous()
    torch.testing.assert_close(found, rows.float().T @ grads.float(), rtol=0, atol=0)


def test_the_narrower_one_is_turned():
    """torch writes [narrow, wide]: the result is a view of it, turned, where [wide, narrow] was asked for."""
    assert products.turned_product(torch.ones(9, 4), torch.ones(9, 6)).is_contiguous()
    assert products.turned_product(torch.ones(9, 6), torch.ones(9, 4)).T.is_contiguous()
