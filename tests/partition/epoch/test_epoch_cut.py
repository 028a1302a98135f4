"""The objective epoch: the predicted epoch of the worst rank, and how the cut follows the prices."""

import json

import numpy as np
import pytest

from distgnn.datasets import load_graph
from distgnn.errors import InputError
from distgnn.kernels.runtime import threads
from distgnn.partition import PartitionBook, cut_edges, describe, partition_graph
from distgnn.partition.core.shares import part_shares
from distgnn.partition.epoch.epoch_price import EpochPrices, Loads, loads_of, read_prices

SOURCE = "communities:nodes=1500,communities=12,avg_degree=14,feats=4,classes=3,mixing=0.2"
FREE, DEAR = EpochPrices(1e-9, 1e-6, 0.0), EpochPrices(1e-12, 1e-9, 1e-5)


@pytest.fixture(scope="module")
def edges():
    return load_graph(SOURCE).edge_list("both")


def worst(book, prices):
    loads = loads_of(book.num_arcs, book.num_owned, book.num_rows, book.pair_rows, "owners")
    return prices.seconds(loads, book.cut.shares).max()


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


def test_the_cut_follows_the_prices(edges):
    books = {None: PartitionBook(edges, cut_edges(edges, 5))}
    for prices in (FREE, DEAR):
        books[prices] = PartitionBook(edges, cut_edges(edges, 5, objective="epoch", prices=prices))
        assert worst(books[prices], prices) < worst(books[None], prices)
    assert worst(books[FREE], FREE) < worst(books[DEAR], FREE)
    assert worst(books[DEAR], DEAR) < worst(books[FREE], DEAR)
    assert books[DEAR].max_rank_rows < books[None].max_rank_rows
    work = FREE.seconds(Loads(books[FREE].num_arcs, books[FREE].num_owned, np.zeros(5)), part_shares(5))
    assert work.max() < 1.005 * work.mean()  # nothing but arcs and dense rows counts: they are level


def test_owners_make_up_for_what_edges_cannot(edges):
    cut = cut_edges(edges, 5, "libra", refine=True)
    for prices in (EpochPrices(1e-10, 3e-6, 1e-6), EpochPrices(0.0, 1e-6, 1e-8)):
        after = cut_edges(edges, 5, "libra", refine=True, objective="epoch", prices=prices)
        assert worst(PartitionBook(edges, after), prices) <= worst(PartitionBook(edges, cut), prices)


def test_the_same_bytes_for_any_number_of_threads(edges, monkeypatch):
    monkeypatch.setattr(threads, "SERIAL_WORK", 0)
    before = threads.get_num_threads()
    cuts = []
    for count in (1, 8):
        threads.set_num_threads(count)
        cuts.append(cut_edges(edges, 5, objective="epoch", prices=DEAR))
    threads.set_num_threads(before)
    np.testing.assert_array_equal(cuts[1].edge_part, cuts[0].edge_part)
    np.testing.assert_array_equal(cuts[1].owner, cuts[0].owner)


def test_the_report_predicts_the_epoch(tmp_path):
    written = {"format_version": 1, "width": 64, "num_layers": 3, "seconds_per_arc_value": 1e-10}
    written |= {"seconds_per_dense_row": 1e-6, "seconds_per_exchanged_row": 1e-6, "ranks": 2}
    (tmp_path / "prices.json").write_text(json.dumps(written))
    out = tmp_path / "parts"
    manifest = partition_graph(SOURCE, 3, out, objective="epoch", prices=tmp_path / "prices.json")
    assert manifest["objective"] == "epoch"
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
        ({"width": 0}, "width is 0"),
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


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"objective": "speed"}, "unknown objective 'speed'"),
        ({"objective": "epoch"}, "needs prices"),
        ({"objective": "epoch", "prices": FREE, "method": "libra"}, "not of libra"),
        ({"objective": "epoch", "prices": FREE, "method": "cmr-stream"}, "not of cmr-stream"),
        ({"objective": "epoch", "prices": FREE, "groups": 2}, "cut in one level"),
    ],
)
def test_objectives_that_cannot_be(edges, options, message):
    with pytest.raises(InputError, match=message):
        cut_edges(edges, 4, **options)
