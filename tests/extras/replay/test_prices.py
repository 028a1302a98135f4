"""Prices that cannot be are refused in one line."""

import json
import os

import pytest
from fuzzing import no_hang

from distgnn.config import EDGE_MODELS, MODELS
from distgnn.errors import InputError
from distgnn.extras.replay.planning.epoch_estimate import read_prices


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


def test_a_pipe_is_refused(tmp_path):
    os.mkfifo(tmp_path / "prices.json")
    with no_hang(), pytest.raises(InputError):
        read_prices(tmp_path / "prices.json")


@pytest.mark.slow
def test_models_of_vertex_features_are_planned(run, graph_folder, tmp_path):
    one = tmp_path / "one"
    assert run("partition", graph_folder, "--parts", 1, "--out", one, "--method", "libra", "--quiet")[0] == 0
    for model in [name for name in MODELS if name not in (*EDGE_MODELS, "rgcn")]:
        code, _, err = run("plan", one, "--model", model, "--ranks", "1,2")
        assert code == 0, err


def test_a_single_rank_has_no_prices(refused, tmp_path):
    refused("prices", tmp_path / "prices.json", "--ranks", 1, "--seconds", 0, says="seconds is 0")
    refused("prices", tmp_path / "prices.json", "--num-layers", 1, says="at least 2 layers")
