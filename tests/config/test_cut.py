"""The configuration of a cut: what it takes, what it refuses, and that the command line has nothing else."""

import dataclasses
import inspect

import pytest

from distgnn.config import CutConfig
from distgnn.config.cut import CUT_OPTIONS, make_config
from distgnn.config.option import help_of
from distgnn.errors import InputError


def test_options_change_a_configuration():
    config = CutConfig("libra", seed=4)
    assert make_config(config, {"refine": True}) == CutConfig("libra", seed=4, refine=True)
    assert make_config("random", {}) == CutConfig("random")
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.seed = 5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sede": 1}, "unknown option 'sede': did you mean 'seed'?"),
        ({"qqq": 1}, "unknown option 'qqq': choose from method, "),
        ({"direction": "both"}, "unknown option 'direction'"),
    ],
)
def test_an_unknown_option_is_named_with_the_nearest(options, message):
    with pytest.raises(InputError) as error:
        make_config("cmr", options, CUT_OPTIONS)
    assert str(error.value).startswith(message) and "\n" not in str(error.value)


@pytest.mark.parametrize(
    "wrong",
    [{"method": "magic"}, {"order": "x"}, {"direction": "x"}, {"self_loops": "x"}, {"seed": -1},
     {"seed": 2**63}, {"seed": True}, {"seed": 1.5}, {"normalize_feats": "x"}, {"effort": "x"}],
)  # fmt: skip
def test_settings_that_cannot_be(wrong):
    with pytest.raises(InputError):
        CutConfig(**wrong).check()


@pytest.mark.parametrize(("num_parts", "groups"), [(0, 1), (2**15, 1), (4, 3), (4, 0), (4, True), (2.0, 1)])
def test_parts_that_cannot_be(num_parts, groups):
    with pytest.raises(InputError):
        CutConfig(groups=groups).check_parts(num_parts)


def test_the_command_has_an_option_for_each_field():
    from distgnn.cli.commands.partition import partition

    given = inspect.signature(partition).parameters
    for field in dataclasses.fields(CutConfig):
        if field.name != "groups":  # --parts 8x4
            assert given[field.name].default == field.default
            [option] = given[field.name].annotation.__metadata__
            assert option.help == help_of(field)
