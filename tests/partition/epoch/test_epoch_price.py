"""The predicted epoch of the slowest rank, from measured prices."""

import json

import numpy as np
import pytest

from distgnn.errors import InputError
from distgnn.partition import describe, partition_graph
from distgnn.partition.core.shares import part_shares
from distgnn.partition.epoch.epoch_price import EpochPrices, Loads, read_prices

SOURCE = "communities:nodes=1500,communities=12,avg_degree=14,feats=4,classes=3,mixing=0.2"


def test_seconds_are_those_of_the_formula():
    prices = EpochPrices(2e-9, 3e-6, 5e-7, width=10, num_layers=4)
    loads = Loads(np.array([100, 50]), np.array([7, 9]), np.array([20, 20]))
    expected = [3 * (2e-8 * 100 + 5e-7 * 20) + 4 * 3e-6 * 7, 3 * (2e-8 * 50 + 5e-7 * 20) + 4 * 3e-6 * 9]
    np.testing.assert_allclose(prices.seconds(loads, part_shares(2)), expected)
    twice = prices.seconds(loads, part_shares(2, [2, 1]))  # speeds 4/3 and 2/3 of the mean
    np.testing.assert_allclose(twice[0], 3 * (2e-8 * 75 + 5e-7 * 20) + 4 * 3e-6 * 5.25)
    told = prices.predict(loads, part_shares(2))
    assert told["rank"] == int(np.argmax(expected)) and told["seconds"] == pytest.approx(max(expected))
    spent = (told[f"{name}_seconds"] for name in ("aggregate", "dense", "exchange"))
    assert sum(spent) == pytest.approx(told["seconds"])


def test_the_report_predicts_the_epoch(tmp_path):
    written = {"format_version": 1, "width": 64, "num_layers": 3, "seconds_per_arc_value": 1e-10}
    written |= {"seconds_per_dense_row": 1e-6, "seconds_per_exchanged_row": 1e-6, "ranks": 2}
    (tmp_path / "prices.json").write_text(json.dumps(written))
    out = tmp_path / "parts"
    manifest = partition_graph(SOURCE, 3, out, prices=tmp_path / "prices.json")
    assert manifest["objective"] == "rows"
    assert describe(out)["predicted_epoch"] == manifest["predicted_epoch"]
    assert describe(out, tmp_path / "prices.json")["predicted_epoch"] == manifest["predicted_epoch"]
    parts = manifest["parts"]
    pairs = np.array(manifest["pair_rows"])
    loads = Loads(
        *(np.array([part[name] for part in parts]) for name in ("arcs", "owned")), pairs.sum(0) + pairs.sum(1)
    )
    seconds = read_prices(tmp_path / "prices.json").seconds(loads, part_shares(3))
    assert manifest["predicted_epoch"]["seconds"] == pytest.approx(seconds.max())


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
