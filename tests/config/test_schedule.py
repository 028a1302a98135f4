"""Settings of a schedule that make no sense together are refused with the reason, here and on the command line."""

import pytest

from distgnn.config import Algorithm
from distgnn.config.schedule import Schedule
from distgnn.errors import InputError

REFUSED = [
    ("cd-0", {"late_row_average": 0.5}, "late_row_average averages rows that are late: cd-0 has none"),
    ("cd-2", {"late_row_average": 1.0}, "late_row_average is 1.0"),
    ("cd-2", {"late_row_average": float("nan")}, "late_row_average is nan"),
    ("cd-2", {"warmup_epochs": 0}, "warmup_epochs is 0"),
]


@pytest.mark.parametrize("algorithm, settings, says", REFUSED)
def test_refused(algorithm, settings, says):
    with pytest.raises(InputError, match=says):
        Schedule(**settings).check(Algorithm.parse(algorithm))


@pytest.mark.parametrize(
    "algorithm, settings",
    [
        ("cd-0", {"wire": "int4"}),
        ("cd-0", {"wire_backward": "int8"}),
        ("cd-5", {"wire": "int8", "late_row_average": 0.9}),
    ],
)
def test_allowed(algorithm, settings):
    Schedule(**settings).check(Algorithm.parse(algorithm))


@pytest.mark.parametrize(
    "algorithm, settings, warns",
    [
        ("cd-1", {}, True),
        ("cd-1", {"wire": "int8", "warmup_epochs": 5}, True),
        ("cd-1", {"late_row_average": 0.8}, False),
        ("cd-5", {}, False),
        ("cd-0", {}, False),
    ],
)
def test_caution_is_for_rows_one_epoch_late_without_smoothing(algorithm, settings, warns):
    line = Schedule(**settings).caution(Algorithm.parse(algorithm))
    assert (line is not None) == warns
    assert line is None or "--set late_row_average=0.8" in line
