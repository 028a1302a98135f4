"""`distgnn bench --against-dgl`: contestants are checked before they are compared, and compared honestly."""

import json
from types import SimpleNamespace

import pytest
from command import distgnn

from distgnn.bench.against_dgl import check_same_loss, parse_contestants, with_ratios
from distgnn.errors import InputError, RunError


def test_names():
    assert parse_contestants("dgl, bound,dgl") == ["dgl", "bound"]
    with pytest.raises(InputError, match="unknown contestant 'tensorflow'"):
        parse_contestants("dgl,tensorflow")


def test_contestants_that_differ_are_not_compared():
    same = [SimpleNamespace(name="dgl", start_loss=1.0), SimpleNamespace(name="distgnn", start_loss=1.00001)]
    check_same_loss([*same, SimpleNamespace(name="bound", start_loss=None)])
    with pytest.raises(RunError, match="do not train the same model"):
        check_same_loss([*same, SimpleNamespace(name="pyg", start_loss=1.01)])


def test_ratios():
    seconds = {"dgl": 8.0, "distgnn": 2.0, "bound": 1.0}
    rows = [{"name": n, "epoch_seconds_median": s, "peak_rss_bytes": int(s * 100)} for n, s in seconds.items()]
    ours = with_ratios(rows)[1]
    assert (ours["speedup_vs_dgl"], ours["memory_vs_dgl"], ours["times_bound"]) == (4.0, 0.25, 2.0)


@pytest.mark.slow
def test_several_parts_are_refused(two_parts, tmp_path):
    done = distgnn("bench", two_parts, "--against-dgl", "--out", tmp_path / "bench.json")
    assert done.returncode == 2
    assert "made with --parts 1" in done.stderr


def test_models_that_no_contestant_knows_are_refused(refused, parts):
    refused("bench", parts, "--against-dgl", "--model", "gin", says="choose from sage, gcn, gat")
    refused("bench", parts, "--against-dgl", "--norm", "batch", says="choose from layer, none")


@pytest.mark.slow
@pytest.mark.parametrize(("model", "contestants"), [("sage", "dgl,distgnn,bound"), ("gat", "dgl,distgnn")])
def test_all_contestants_train_the_same_model(parts, tmp_path, model, contestants):
    out = tmp_path / "bench.json"
    words = ["--against-dgl", "--contestants", contestants, "--model", model, "--rounds", 1]
    done = distgnn("bench", parts, *words, "--hidden-feats", 8, "--out", out)
    assert done.returncode == 0, done.stderr
    rows = {row["name"]: row for row in json.loads(out.read_text())["rows"]}
    assert rows.keys() == {*contestants.split(",")}
    assert rows["dgl"]["loss_without_dropout"] == pytest.approx(rows["distgnn"]["loss_without_dropout"], rel=1e-5)
    assert "bound" not in rows or rows["bound"]["bandwidth"] > 0
