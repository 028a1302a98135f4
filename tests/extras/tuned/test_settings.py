"""The table of recipe tuned: settings that the program has; what is given stays, and graphs choose the table."""

from distgnn.config import Settings
from distgnn.extras.tuned.settings import FEW_LABELS, MANY_LABELS, candidates


def test_each_setting_is_one_that_the_program_has():
    for options in (*FEW_LABELS.values(), *MANY_LABELS.values()):
        settings = Settings().with_options(options).checked()
        known = {**vars(settings.train), **vars(settings.model), "model": settings.model.name}
        assert {name: known[name] for name in options} == options


def test_what_is_given_stays_and_graphs_choose_the_table():
    many, few = {"sparse_feats": False, "train": 5000}, {"sparse_feats": True, "train": 140}
    assert candidates(many, set(), "sage").keys() == MANY_LABELS.keys()
    assert candidates(few, set(), "sage").keys() == FEW_LABELS.keys()
    assert all(one["feat_norm"] == "row-l2" for one in candidates(few, set(), "sage").values())
    gat = candidates(many, {"model", "dropout"}, "gat")
    assert len(gat) == 3 and not any({"model", "dropout"} & one.keys() for one in gat.values())
    assert len(candidates(many, {"model"}, "gin")) > 5
    assert len(candidates(few, {"hidden_feats", "num_layers", "dropout", "weight_decay", "norm"}, "sage")) == 5
