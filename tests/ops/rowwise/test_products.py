"""Products of bfloat16 rows, by torch or in float32 where torch's are slow, and their weight gradients."""

from types import SimpleNamespace

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from distgnn.kernels import Tuning
from distgnn.ops.buffers import Buffers
from distgnn.ops.rowwise import products

PRODUCTS = (torch.ops.aten.mm.default, torch.ops.aten.mm.out, torch.ops.aten.addmm.out, torch.ops.aten.addmm_.default)


class Seen(TorchDispatchMode):
    """Notes the dtypes of what torch multiplies within."""

    def __init__(self):
        super().__init__()
        self.dtypes = set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func in PRODUCTS:
            self.dtypes |= {arg.dtype for arg in args if isinstance(arg, torch.Tensor)}
        return func(*args, **(kwargs or {}))


@pytest.fixture
def graph(multiplied):
    return SimpleNamespace(tuning=Tuning(wide_products=not multiplied), buffers=Buffers(), factor_recorder=None)


@pytest.fixture
def whole():
    """whole(shape): bfloat16 numbers from -2 to 2. Sums of 16 of their products are exact in bfloat16."""
    generator = torch.Generator().manual_seed(0)
    return lambda *shape: torch.randint(-2, 3, shape, generator=generator).bfloat16()


@pytest.fixture(params=[True, False], ids=["torch", "widened"])
def multiplied(request, monkeypatch):
    """Torch multiplies bfloat16, or, where that is slower, never does."""
    for name in ("OVER_ROWS", "BLOCK_ROWS"):
        monkeypatch.setattr(products, name, 16)
    seen = Seen()
    with seen:
        yield request.param
    assert (torch.bfloat16 in seen.dtypes) == request.param


class TestOfBfloat16:
    def test_one_and_two_pairs_and_over_the_rows(self, graph, whole):
        rows, weight, more = whole(37, 4), whole(4, 4).float(), whole(37, 4)
        expected = rows.float() @ weight
        assert products.product(graph, rows, weight).dtype == torch.bfloat16
        assert torch.equal(products.product(graph, rows, weight).float(), expected)
        expected = expected + more.float() @ weight.T
        assert torch.equal(products.sum_of_products(graph, [(rows, weight), (more, weight.T)]).float(), expected)
        found = products.sum_of_products(graph, [(rows, weight), (more, weight.T)], over=rows)
        assert found is rows and torch.equal(rows.float(), expected)

    @pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
    def test_added_to_rows_and_to_wider_ones(self, graph, whole, dtype):
        rows, weight, out = whole(37, 4), whole(4, 4), whole(37, 4).to(dtype)
        expected = out.float() + rows.float() @ weight.float()
        products.add_product(graph, rows, weight, out)
        assert out.dtype == dtype and torch.equal(out.float(), expected)

    def test_with_torchs_gradient(self, graph, whole):
        rows, weight, grad = whole(8, 4).requires_grad_(), whole(4, 4).requires_grad_(), whole(8, 4)
        out = products.plain_product(graph, rows, weight)
        out.backward(grad)
        assert out.dtype == rows.grad.dtype == weight.grad.dtype == torch.bfloat16
        assert torch.equal(out.float(), rows.float() @ weight.float())
        assert torch.equal(rows.grad.float(), grad.float() @ weight.float().T)
        assert torch.equal(weight.grad.float(), rows.float().T @ grad.float())

    def test_weight_gradients(self, graph, whole):
        rows, grads = whole(37, 4), whole(37, 4)
        assert torch.equal(products.weight_gradient(graph, rows, grads), rows.float().T @ grads.float())


@pytest.mark.parametrize("widths", [(3, 7), (7, 3), (5, 5), (602, 8)])
def test_weight_gradients_of_bfloat16_rows(monkeypatch, widths):
    """Sums of 16 whole numbers up to 8 are whole and below 128: exact in bfloat16, so equality is to the last bit."""
    monkeypatch.setattr(products, "BLOCK_ROWS", 16)
    generator = torch.Generator().manual_seed(0)
    rows, grads = (torch.randint(-8, 9, (37, width), generator=generator).bfloat16() for width in widths)
    rows = rows.clamp(0, 1)
    found = products.weight_gradient(SimpleNamespace(tuning=Tuning(wide_products=0)), rows, grads)
    assert found.dtype == torch.float32 and found.shape == widths and found.is_contiguous()
    torch.testing.assert_close(found, rows.float().T @ grads.float(), rtol=0, atol=0)


def test_the_narrower_one_is_turned():
    """torch writes [narrow, wide]: the result is a view of it, turned, where [wide, narrow] was asked for."""
    assert products.turned_product(torch.ones(9, 4), torch.ones(9, 6)).is_contiguous()
    assert products.turned_product(torch.ones(9, 6), torch.ones(9, 4)).T.is_contiguous()
