"""Whether a checkpoint is of these settings: settings that earlier versions had, and this one has not."""

from pathlib import Path

import pytest

from distgnn.errors import InputError
from distgnn.train.checkpoint.fingerprint import PARTS
from distgnn.train.checkpoint.identity import check_identity

GRAPH = {"vertices": 5, "arc count": 8} | dict.fromkeys(PARTS, "0")
NOW = {"run.smooth": 0.0, "train.lr": 0.01}


def test_settings_of_an_earlier_version_that_were_off_are_no_difference():
    saved = NOW | {"run.adaptive": 0.0, "run.error_feedback": False}
    check_identity(Path("run"), {"graph": GRAPH, "settings": saved}, NOW, GRAPH)


@pytest.mark.parametrize("name, value", [("adaptive", 0.05), ("error_feedback", True)])
def test_settings_of_an_earlier_version_that_were_on_are_refused(name, value):
    saved = NOW | {f"run.{name}": value}
    with pytest.raises(InputError, match=r"^run was trained with --.*, which this version does not have: train anew$"):
        check_identity(Path("run"), {"graph": GRAPH, "settings": saved}, NOW, GRAPH)
