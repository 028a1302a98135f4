"""Prices that cannot be are refused in one line."""

import json

import pytest

from distgnn.errors import InputError
from distgnn.planning.epoch_estimate import read_prices


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seconds_per_dense_row": -1}, "seconds_per_dense_row is -1"),
        ({"seconds_per_dense_row": None}, "seconds_per_dense_row is None"),
        ({"seconds_per_dense_row": 10**400}, "seconds_per_dense_row is 1000"),
        ({"width": 0}, "width is 0"),
        ({"width": 10**400}, "width is 1000"),
        ({"format_version": 9}, "no file of prices of format version 1"),
        ({"seconds_per_arc_value": 0, "seconds_per_dense_row": 0, "seconds_per_exchanged_row": 0}, "all prices are 0"),
    ],
)
def test_prices_that_cannot_be(tmp_path, change, message):
    good = {"format_version": 1, "width": 64, "num_layers": 3, "seconds_per_arc_value": 1e-10}
    good |= {"seconds_per_dense_row": 1e-6, "seconds_per_exchanged_row": 1e-6}
    (tmp_path / "prices.json").write_text(json.dumps(good | change))
    with pytest.raises(InputError, match=message):
        read_prices(tmp_path / "prices.json")
