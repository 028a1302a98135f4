"""What ranks tell of themselves may be damaged: it never ends who listens."""

import json

import pytest

from distgnn.system.jobs.run_watch import limit_of
from distgnn.system.jobs.watchdog import fault, phase_seconds

TOLD = {"phase": "forward", "seconds": 2.5, "waits": "", "place": "a.py:1"}


def test_a_rank_that_works_waits_or_is_silent():
    text = json.dumps(TOLD)
    assert fault(text, answers=True) == "is in forward for 2 s at a.py:1"
    assert fault(json.dumps(TOLD | {"waits": "exchange"}), answers=True) is None
    assert fault(text, answers=False).startswith("does not answer")
    assert fault(json.dumps({"ended": True}), answers=False) == "has ended"
    assert phase_seconds(text) == 2.5


@pytest.mark.parametrize("text", [None, "", "{", "[]", "3", "{}", json.dumps(TOLD | {"seconds": 10**400}), "[" * 10**5])
def test_damaged_words_are_none(text):
    assert fault(text, answers=True) == "wrote no status"
    assert phase_seconds(text) == float("inf")


@pytest.mark.parametrize("value", ["9" * 400, "'x'", "[]", ""])
def test_a_limit_that_is_no_number_is_none(tmp_path, value):
    assert limit_of(tmp_path) == 0
    (tmp_path / "config.toml").write_text(f"[train]\ntimeout = {value}\n")
    assert limit_of(tmp_path) == 0
