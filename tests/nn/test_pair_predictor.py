"""Scores of pairs, a block at a time, and their gradients equal the decoder on all pairs at once."""

import pytest
import torch

from distgnn.nn import PairDecoder
from distgnn.nn import pair_predictor as module


@pytest.mark.parametrize("num_pairs", [0, 5, 23])
@pytest.mark.parametrize(("kind", "outputs"), [("dot", None), ("mlp", None), ("concat", 3)])
def test_blocks_change_nothing(monkeypatch, kind, outputs, num_pairs):
    monkeypatch.setattr(module, "BLOCK_PAIRS", 7)
    torch.manual_seed(0)
    decoder = PairDecoder(kind, 4, outputs).double()
    table = torch.randn(9, 4, dtype=torch.float64, requires_grad=True)
    places = torch.randint(0, 9, (num_pairs, 2))
    wanted = [table, *decoder.parameters()]
    scores = module.pair_scores(decoder, table, places)
    expected = decoder(table[places[:, 0]], table[places[:, 1]])
    assert scores.shape == expected.shape == (num_pairs, *([outputs] if outputs else []))
    torch.testing.assert_close(scores, expected)
    weight = torch.randn_like(expected)
    found, right = (torch.autograd.grad((one * weight).sum(), wanted) for one in (scores, expected))
    torch.testing.assert_close(found, right)
    with torch.no_grad():
        torch.testing.assert_close(module.pair_scores(decoder, table, places), expected)


def test_a_dot_product_is_one_number():
    with pytest.raises(ValueError, match="dot gives one number"):
        PairDecoder("dot", 4, 3)
