"""Names of earlier versions: renamed and removed settings are named, in Python, on the command line and in files."""

import pytest

from distgnn.bench.contenders import Contender
from distgnn.config import TrainConfig, read_settings
from distgnn.config.options.earlier import RENAMED, drop_earlier, new_name
from distgnn.config.schedule import Schedule
from distgnn.errors import InputError

PLACES = {"smooth": (Schedule, "run"), "smooth_labels": (TrainConfig, "train")}


@pytest.mark.parametrize("old", RENAMED)
def test_a_setting_with_another_name_now_is_refused_with_that_name(old, tmp_path):
    kind, section = PLACES[old]
    says = f"{old} is called {RENAMED[old]} now"
    with pytest.raises(InputError, match=f"^{says}$"):
        kind(**{old: 1})
    assert hasattr(kind(), RENAMED[old])
    file = tmp_path / "config.toml"
    file.write_text(f"[{section}]\n{old} = true\n")
    with pytest.raises(InputError, match=says):
        read_settings(file)
    file.write_text(f"[{section}]\n{old} = false\n")
    assert read_settings(file).train == TrainConfig()


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


def test_removed_settings_are_dropped_if_off_and_refused_if_on():
    off = {"run.adaptive": 0.0, "run.error_feedback": False, "run.late_row_average": 0.5}
    assert drop_earlier(off, "run") == {"run.late_row_average": 0.5}
    assert drop_earlier({"adaptive": 0.0, "wire": "int8"}, "run") == {"wire": "int8"}
    with pytest.raises(InputError, match=r"^run was trained with --adaptive, which this version does not have"):
        drop_earlier({"adaptive": 0.05}, "run")
    with pytest.raises(InputError, match="trained with --error-feedback"):
        drop_earlier({"run.error_feedback": True}, "run")
