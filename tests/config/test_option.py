"""Words of before name what they are now."""

import pytest

from distgnn.bench.contenders import Contender
from distgnn.config.option import new_name
from distgnn.errors import InputError


@pytest.mark.parametrize(
    ("option", "new"),
    [
        ("--smooth", "--late-row-average"),
        ("--smooth-labels", "--correct-and-smooth"),
        ("--no-smooth-labels", "--no-correct-and-smooth"),
    ],
)
def test_an_option_with_another_name_now(option, new):
    assert new_name(option) == f"{option} is called {new} now"
    assert new_name(new) is None


def test_an_option_of_another_command_now():
    assert new_name("--prices", "info") == "info has no --prices now: distgnn plan has"
    assert new_name("--prices", "plan") is None


def test_a_contender_too():
    with pytest.raises(InputError, match="smooth is called late-row-average now"):
        Contender.parse("cd-1/smooth=0.8")
