"""What update on copies does not go with, and its contenders in `distgnn bench`."""

import pytest

from distgnn.bench.contenders import parse_contenders
from distgnn.config import Settings
from distgnn.config.extras import extras
from distgnn.errors import InputError

BY_ARC = ("gat", "gatv2", "edgegat", "gine", "rgcn", "gcn2", "appnp")
REFUSED = [
    *(
        ({"model": name, "weighted": name in ("gcn2", "appnp")}, "held", f"{name}.* works arc by arc")
        for name in BY_ARC
    ),
    ({"wire": "int8"}, "0c", "0c sends nothing in training"),
    ({"warmup_epochs": 3}, "0c", "0c sends nothing in training"),
    ({"algorithm": "cd-2"}, "0c", "0c sends nothing in training"),
    ({"remat": True}, "0c", "--remat repeats exchanges"),
    ({}, "paper", "paper is about late rows: cd-0 has none"),
    ({"algorithm": "cd-2", "late_row_average": 0.5}, "paper", "late_row_average is about held rows"),
    ({"algorithm": "cd-2", "wire_backward": "int8"}, "paper", "leave wire_backward out"),
    ({}, "mine", "unknown copy_updates 'mine'"),
]
BESIDE = [  # another extra, its settings, the line
    ("kfac", {"optimizer": "kfac"}, "kfac is for update on owners"),
    ("batches", {"cluster_batches": 4}, "need update on owners"),
    ("nodes", {"ranks_per_node": 2}, "exchange rows in different ways"),
]


@pytest.mark.parametrize(("options", "rule", "says"), REFUSED)
def test_refused(options, rule, says):
    with pytest.raises(InputError, match=says):
        Settings().with_options({"copy_updates": rule} | options).checked()


@pytest.mark.parametrize(("name", "options", "says"), BESIDE)
def test_other_extras_are_refused(name, options, says):
    if name not in extras():
        pytest.skip(f"there is no extra {name}")
    for rule in ("held", "0c"):
        with pytest.raises(InputError, match=says):
            Settings().with_options({"copy_updates": rule} | options).checked()


@pytest.mark.parametrize("options", [{}, {"algorithm": "cd-5", "wire": "int8", "warmup_epochs": 2}])
def test_allowed(options):
    for rule in ("held", "paper" if options else "0c"):
        Settings().with_options({"copy_updates": rule} | options).checked()


def test_contenders():
    found = parse_contenders(["0c", "cd-2/copies", "cd-2/paper-rule/suppressed", "paper"])
    settings = [one.settings(Settings()) for one in found]
    assert [one.schedule.copy_updates for one in settings] == [None, "0c", "held", "paper", "held"]
    assert [one.run.cache_first and one.run.transform_first for one in settings] == [True] * 4 + [False]
    assert [one.suppressed for one in found] == [False, False, False, True, False]
    for wrong, says in {
        "0c/int8": "0c/int8: 0c takes no word but suppressed",
        "cd-2/copies/paper-rule": "copies and paper-rule are both given",
        "cd-0/paper-rule": "paper is about late rows",
    }.items():
        with pytest.raises(InputError, match=says):
            parse_contenders([wrong])
