"""The command line of `train` and `bench` is frozen: scripts depend on the name, type and default of each option."""

import inspect
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import typer

from distgnn.cli.main import make_app
from distgnn.cli.options import with_options
from distgnn.config import TrainConfig
from distgnn.config.option import option
from distgnn.config.settings import read_settings

FROZEN = Path(__file__).with_name("frozen_options.txt")
KINDS = {"text": "str", "integer": "int", "float": "float", "boolean": "bool"}  # names of typer < 0.20


def kind_of(parameter) -> str:
    if hasattr(parameter, "type_descriptor"):
        return parameter.type_descriptor.annotation.__name__
    return KINDS.get(parameter.type.name, parameter.type.name)


def options_of(command: str) -> list[str]:
    parameters = typer.main.get_command(make_app()).commands[command].params
    return sorted(
        f"{command} {'/'.join(one.opts + one.secondary_opts)}: {kind_of(one)} = {one.default!r}"
        for one in parameters
        if one.name != "help" and not str(getattr(one, "rich_help_panel", "")).startswith("Extra: ")
    )


@pytest.mark.parametrize("command", ["train", "bench"])
def test_options_are_those_that_scripts_depend_on(command):
    """A new option is a new line in frozen_options.txt; a changed or missing line breaks someone's script."""
    frozen = [line for line in FROZEN.read_text().splitlines() if line.startswith(f"{command} ")]
    assert options_of(command) == frozen


def test_a_new_field_is_a_new_option(capsys):
    @dataclass
    class Longer(TrainConfig):
        momentum: float | None = option(None, "Of the optimizer.", panel="Training", choices=(), default_text="none")

    seen = []

    @with_options
    def command(config: Longer) -> None:
        """Keep what was given."""
        seen.append(config)

    one = typer.Typer(pretty_exceptions_enable=False)
    one.command()(command)
    one(["--momentum", "0.9", "--lr", "0.5"], standalone_mode=False)
    assert seen == [Longer(lr=0.5, momentum=0.9)]
    one(["--help"], standalone_mode=False)
    assert "(default: none)" in " ".join(capsys.readouterr().out.replace("│", " ").split())


def test_settings_without_an_option_are_set_by_name(run, ran, parts, tmp_path):
    words = ["--hidden-feats", 8, "--epochs", 1, "--quiet", "--run-dir", tmp_path / "run"]
    words += ["--set", "cache_first=false", "--set", "clip_grad=2", "--set", "stem=linear", "--set", "loss=mae"]
    values = parts.parent / "graph"
    np.save(values / "labels.npy", np.arange(40) / 7.0)
    assert run("partition", values, "--parts", 1, "--out", tmp_path / "values", "--quiet")[0] == 0
    ran("train", tmp_path / "values", *words)
    found = read_settings(tmp_path / "run" / "config.toml")
    assert (found.run.cache_first, found.train.clip_grad, found.model.stem) == (False, 2.0, "linear")
    assert found.train.loss == "mae" and found.train.task == "regression"


def test_no_help_text_has_markup(monkeypatch, capsys):
    """Each word of the help of each command and option is printed as it is written; `cluster:M:` was an emoji."""
    monkeypatch.setenv("COLUMNS", "5000")  # nothing is wrapped
    group, changed = typer.main.get_command(make_app()), []
    for name, command in {"": group, **group.commands}.items():
        command.main(["--help"], prog_name="distgnn", standalone_mode=False)
        printed = " ".join(capsys.readouterr().out.replace("│", " ").split())
        texts = [command.help, *(getattr(one, "help", None) for one in command.params)]
        written = [" ".join(inspect.cleandoc(text.split("\f")[0]).split()) for text in texts if text]
        changed += [f"{name}: {text}" for text in written if text not in printed]
    assert changed == []


@pytest.mark.parametrize(
    "words, offered",
    [
        (("par",), ["partition"]),
        (("train", "parts", "--alg"), ["--algorithm"]),
        (("train", "parts", "--model", "gat"), ["gat", "gatv2"]),
    ],
)
def test_the_shell_completes_commands_options_and_choices(words, offered, monkeypatch, capsys):
    monkeypatch.setenv("_DISTGNN_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", " ".join(("distgnn", *words)))
    monkeypatch.setenv("COMP_CWORD", str(len(words)))
    with pytest.raises(SystemExit):
        make_app()(prog_name="distgnn")
    assert capsys.readouterr().out.split() == offered


def test_what_starts_ranks_imports_no_arrays_and_no_kernels():
    """It waits while they train: half a second and 200 MB that nobody needs."""
    program = (
        "import sys; from distgnn.cli.main import make_app; from distgnn.partition import read_manifest; "
        "make_app(['train', 'parts']); import distgnn.cli.places, distgnn.cli.places, distgnn.train.run.run_folder; "
        "print(*{'numpy', 'scipy', 'numba', 'torch', 'matplotlib', 'mpi4py', 'rich'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "\n"), done.stderr


def test_the_package_is_the_program():
    done = subprocess.run([sys.executable, "-m", "distgnn", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("distgnn 0")
