"""Recipes: each row names options that there are, given options stay, and what was picked is said as flags."""

from dataclasses import fields

import pytest

from distgnn.config import Settings
from distgnn.config.option import option_name
from distgnn.config.recipes import TABLES, pick
from distgnn.errors import InputError


def test_rows_name_options_with_values_that_they_may_have():
    for recipe in TABLES:
        for row in TABLES[recipe]:
            settings, left = Settings(), dict(row.options)
            for name in ("train", "model", "run", "schedule"):
                group = getattr(settings, name)
                for field in fields(group):
                    if option_name(field) in left:
                        object.__setattr__(group, field.name, left.pop(option_name(field)))
            assert left == {}
            settings.checked()


@pytest.mark.parametrize(("sparse", "feat_norm"), [(True, "row-l2,center"), (False, "standardize")])
def test_features_choose_the_row_and_given_options_stay(sparse, feat_norm):
    options, line = pick("fast", {"sparse_feats": sparse}, "node", {"lr"})
    assert options["feat_norm"] == feat_norm
    assert "lr" not in options and "--lr" not in line
    assert f"--feat-norm {feat_norm}" in line


def test_the_graph_and_what_goes_with_the_options_choose_the_row():
    few = {"sparse_feats": True, "train": 140}
    options, line = pick("fast", few, "node", set())
    assert options["norm"] == "none" and "optimizer" not in options
    assert "few labels" in line and "--norm none" in line
    assert "norm" not in pick("fast", few, "node", set(), lambda options: "norm" not in options)[0]


def test_defaults_are_those_of_the_graph_and_given_options_stay():
    graph = {"sparse_feats": True, "train": 140}
    options, line = pick(None, graph, "node", {"lr", "model"})
    assert options["weight_decay"] > 0 and not {"lr", "model"} & options.keys()
    assert line.startswith("defaults (few labels, sparse features): --num-layers 2")
    assert "lr" not in pick(None, graph, "node", {"optimizer"})[0]
    for other in (graph | {"train": 5000}, graph | {"sparse_feats": False}):
        assert pick(None, other, "node", set()) == ({}, "")
    assert pick(None, graph, "link", set()) == ({}, "")


def test_an_unknown_recipe_is_refused():
    with pytest.raises(InputError, match=r"unknown recipe 'fats'.*did you mean fast"):
        pick("fats", {}, "node", set())
