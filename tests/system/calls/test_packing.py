"""What cannot travel to ranks is named, by the attribute, item or variable."""

import threading

import pytest

from distgnn.errors import InputError
from distgnn.system.calls.launch import launch


class Held:
    def __init__(self, **held):
        self.__dict__ |= held


LOCK = threading.Lock()


@pytest.mark.parametrize(
    ("function", "args", "place"),
    [
        (print, (Held(inner=[0, {"a": LOCK}]),), "Held.inner[1]['a']"),
        (print, (1, LOCK), "argument 1"),
        (lambda inner=LOCK: LOCK, (), "variable LOCK of <lambda>"),
    ],
)
def test_what_cannot_travel_is_named(function, args, place):
    with pytest.raises(InputError) as caught:
        launch(function, args, ranks=2)
    assert caught.value._render_traceback_() == [f"InputError: {caught.value}"]  # in a notebook
    assert str(caught.value).startswith(f"{place} cannot travel to the ranks: cannot pickle") and "\n" not in str(
        caught.value
    )
