"""Settings of earlier versions: those that have another name now, and those that are gone."""

import functools
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from distgnn.config.options.option import Config
from distgnn.errors import InputError

RENAMED = {"smooth": "late_row_average", "smooth_labels": "correct_and_smooth"}
SCRIPTS = {  # what was a command or an option -> the script that measures it
    "bench-kernels": "tests/bench/kernels/bench_kernels.py",
    "--against-dgl": "tests/bench/epoch/against_dgl.py",
    "--contestants": "tests/bench/epoch/against_dgl.py",
    "--time-to-accuracy": "tests/bench/steps/race.py",
    "--contestant": "tests/bench/steps/race.py",
    "--past-target": "tests/bench/steps/race.py",
}
MOVED = {("info", "--prices"): "plan", ("partition", "--prices"): "plan"}  # to another command
REMOVED = {"adaptive": "--adaptive", "error_feedback": "--error-feedback"}  # off by default


def new_name(option: str | None, command: str = "") -> str | None:
    """A line that names what a word of the command line is now, an option or a script; None: it was never another."""
    if option in SCRIPTS:
        return f"{option} is a script of the repository now: python {SCRIPTS[option]}"
    if (command, str(option)) in MOVED:
        return f"{command} has no {option} now: distgnn {MOVED[command, str(option)]} has"
    for old, new in RENAMED.items():
        for prefix in ("--", "--no-"):
            if option == _on_command_line(old, prefix):
                return f"{option} is called {_on_command_line(new, prefix)} now"
    return None


def check_names_now(names: Iterable[str]) -> None:
    """Raise InputError for the first argument that has another name now."""
    for name in names:
        if name in RENAMED:
            raise InputError(f"{name} is called {RENAMED[name]} now")


def refuses_old_names(config: Config) -> Config:
    """Class decorator: an argument with a name of before raises InputError with the name of now."""
    kind: Any = config
    made = kind.__init__

    @functools.wraps(made)
    def checked(self: Any, *args: Any, **values: Any) -> None:
        check_names_now(values)
        made(self, *args, **values)

    kind.__init__ = checked
    return config


def drop_earlier(settings: dict[str, Any], where: str | Path) -> dict[str, Any]:
    """Settings of an earlier version's run without those that this one does not know.

    Args: settings: by name, perhaps with a section in front.

    Raises:
        InputError: where one was switched on: it has another name, or this version cannot train on as that one would.
    """
    for name, value in settings.items():
        plain = name.rpartition(".")[2]
        if value and plain in RENAMED:
            raise InputError(f"{where}: {plain} is called {RENAMED[plain]} now")
        if value and plain in REMOVED:
            raise InputError(f"{where} was trained with {REMOVED[plain]}, which this version does not have: train anew")
    return {name: value for name, value in settings.items() if name.rpartition(".")[2] not in REMOVED | RENAMED}


def _on_command_line(name: str, prefix: str) -> str:
    return prefix + name.replace("_", "-")
