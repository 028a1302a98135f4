"""A schedule that was measured to harm training is said."""

import pytest

from distgnn.config import Algorithm
from distgnn.config.schedule import Schedule


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
