"""Settings of a schedule that make no sense together are refused with the reason, here and on the command line."""

import pytest

from distgnn.config import Algorithm
from distgnn.config.schedule import Schedule
from distgnn.errors import InputError

REFUSED = [
    ("cd-0", "owners", {"late_row_average": 0.5}, "--late-row-average averages rows that are late: cd-0 has none"),
    ("0c", "copies", {"wire": "int8"}, "0c sends nothing in training: leave --wire out"),
    ("0c", "copies", {"warmup_epochs": 3}, "leave --warmup-epochs out"),
    ("cd-2", "owners", {"remote_rule": "paper"}, "add --update copies"),
    ("cd-0", "copies", {"remote_rule": "paper"}, "--remote-rule paper is about late rows: cd-0 has none"),
    ("cd-2", "copies", {"remote_rule": "paper", "late_row_average": 0.5}, "--late-row-average is about held rows"),
    ("cd-2", "copies", {"remote_rule": "paper", "wire_backward": "int8"}, "leave --wire-backward out"),
    ("cd-2", "owners", {"remote_rule": "mine"}, "unknown remote_rule 'mine'"),
    ("cd-2", "owners", {"late_row_average": 1.0}, "late_row_average is 1.0"),
    ("cd-2", "owners", {"late_row_average": float("nan")}, "late_row_average is nan"),
    ("cd-2", "owners", {"warmup_epochs": 0}, "warmup_epochs is 0"),
]


@pytest.mark.parametrize("algorithm, update, settings, says", REFUSED)
def test_refused(algorithm, update, settings, says):
    with pytest.raises(InputError, match=says):
        Schedule(**settings).check(Algorithm.parse(algorithm), update)


@pytest.mark.parametrize(
    "algorithm, update, settings",
    [
        ("cd-0", "owners", {"wire": "int4"}),
        ("cd-0", "owners", {"wire_backward": "int8"}),
        ("cd-5", "owners", {"wire": "int8", "late_row_average": 0.9}),
        ("cd-5", "copies", {"remote_rule": "paper", "wire": "int8", "warmup_epochs": 2}),
        ("0c", "copies", {}),
    ],
)
def test_allowed(algorithm, update, settings):
    Schedule(**settings).check(Algorithm.parse(algorithm), update)


@pytest.mark.parametrize(
    "algorithm, settings, warns",
    [
        ("cd-1", {}, True),
        ("cd-1", {"wire": "int8", "warmup_epochs": 5}, True),
        ("cd-1", {"late_row_average": 0.8}, False),
        ("cd-1", {"remote_rule": "paper"}, False),
        ("cd-5", {}, False),
        ("cd-0", {}, False),
        ("0c", {}, False),
    ],
)
def test_caution_is_for_rows_one_epoch_late_without_smoothing(algorithm, settings, warns):
    line = Schedule(**settings).caution(Algorithm.parse(algorithm))
    assert (line is not None) == warns
    assert line is None or "--late-row-average 0.8" in line
