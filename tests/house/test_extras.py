"""The laws of extras: the core imports none and names none, each can be deleted, and `train --help` stays short."""

import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest
import without_extra
from test_floors import MODULES, imports_of

from distgnn.cli.commands.train import GROUPS, train
from distgnn.cli.main import make_app
from distgnn.config import Algorithm, Schedule
from distgnn.config.extras import commands, extras, load, search_of
from distgnn.errors import InputError

ROOT = Path(__file__).resolve().parents[2]
FOLDER = "distgnn.extras."
MOST_OPTIONS = 45  # of the core in `train --help`
CORE = {name: path for name, path in MODULES.items() if not f"{name}.".startswith(FOLDER)}
NAMES = sorted(extras())


def words_of(name: str) -> list[str]:
    """What only this extra says: its place, its commands, its options, its values of other options."""
    extra = extras()[name]
    fields = {field for kind in extra.options.values() for field in kind.__dataclass_fields__}
    values = {value for of_option in extra.choices.values() for value in of_option}
    words = {rf"{FOLDER}{name}", rf"extras/{name}", *(f"distgnn {word}" for word in extra.commands)}
    words |= fields | {field.replace("_", "-") for field in fields} | {f'"{value}"' for value in values}
    return [rf"(?<![\w-]){re.escape(word)}(?![\w-])" for word in sorted(words)]


def test_the_core_imports_and_names_no_extra():
    words = re.compile("|".join(word for name in NAMES for word in words_of(name)) or "(?!)")  # none are here: no word
    found = [
        f"{path.relative_to(ROOT)}, line {text.count(chr(10), 0, match.start()) + 1}: {match[0]}"
        for path in CORE.values()
        for text in [path.read_text()]
        for match in words.finditer(text)
    ]
    assert found == []
    assert [module for module in CORE for one in imports_of(module) if one.name.startswith(FOLDER)] == []


@pytest.mark.parametrize("name", NAMES)
def test_an_extra_imports_no_other_declares_itself_cheaply_and_has_tests_and_a_page(name):
    own = f"{FOLDER}{name}"
    modules = [module for module in MODULES if f"{module}.".startswith(f"{own}.")]
    used = {one.name for module in modules for one in imports_of(module) if one.name.startswith(FOLDER)}
    assert [module for module in used if not f"{module}.".startswith(f"{own}.")] == []
    assert imports_of(own) == (), "the package itself is a docstring: it is imported with the settings"
    assert list((ROOT / "tests" / "extras" / name).glob("test_*.py"))
    assert (ROOT / "docs" / "extras" / f"{name}.md").is_file()
    first = {one.name for one in imports_of(f"{own}.extra") if not one.inside}
    ours = {"distgnn.config.extras", "distgnn.config.option", "distgnn.config.together", "distgnn.errors"}
    assert first <= ours | set(sys.stdlib_module_names) | set(modules)


def test_tests_import_no_extra_but_their_own():
    """Measurements (tests/bench) do: nothing collects them."""
    tests, place = ROOT / "tests", re.compile(r"extras/(\w+)/")
    found = [
        (str(file), name)
        for file in tests.rglob("*.py")
        for own in [place.match(str(file.relative_to(tests)))]
        for name in re.findall(r"^\s*(?:from|import) distgnn\.extras\.?(\w*)", file.read_text(), re.MULTILINE)
        if (own is None or name != own[1]) and (tests / "bench") not in file.parents
    ]
    assert found == []


def test_what_is_attached_is_there():
    """Every "module:name" leads somewhere, and the core asks for each hook."""
    core = "".join(path.read_text() for path in CORE.values())
    for name, extra in extras().items():
        assert all(f'"{point}"' in core for point in extra.hooks)
        assert all(load(name, place) is not None for place in extra.hooks.values())
        assert all(search_of(name).__doc__ for name in extra.recipes)
        assert set(extra.options) <= {group.__name__ for group in GROUPS}
    assert all(made().__doc__ for made in commands().values())


def test_two_extras_with_a_graph_each_are_refused_together():
    own = [extra.options["Schedule"] for extra in extras().values() if "graph" in extra.hooks]
    given = {fields(one)[0].name: "held" if fields(one)[0].default is None else 2 for one in own}
    Schedule(**dict(list(given.items())[:1])).check(Algorithm.parse("cd-0"))
    if len(given) > 1:
        with pytest.raises(InputError, match="exchange rows in different ways: leave the options of one out"):
            Schedule(**given).check(Algorithm.parse("cd-0"))


def test_the_help_of_train_has_few_options_of_the_core():
    import typer

    command = typer.main.get_command(make_app(["train"])).commands["train"]
    panels = [one.rich_help_panel for one in command.params if one.param_type_name == "option" and one.name != "help"]
    of_extras = [panel for panel in panels if str(panel).startswith("Extra: ")]
    assert 35 < len(panels) - len(of_extras) <= MOST_OPTIONS
    assert {panel.removeprefix("Extra: ") for panel in of_extras} <= set(NAMES)
    assert train.__name__ == "train"


@pytest.mark.slow
def test_extras_can_be_deleted(tmp_path):
    """Their folders, tests and pages are gone: the rest is whole, and who asks for one gets one line.

    All at once, since none may import or name another; `without_extra.py NAME` takes out one, and runs all quick tests.
    """
    copy = without_extra.make_copy(NAMES, tmp_path / "copy")
    for check in without_extra.cheap_checks():
        done = without_extra.run(check, copy)
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    asked = without_extra.requests(NAMES, copy)
    assert len(asked) > len(NAMES)
    for what, code, said in asked:
        assert code == 2 and said.count("\n") == 1 and re.search("extras here: |choose from", said), (what, said)


def test_the_script_names_an_extra_that_is_not_here():
    command = [sys.executable, without_extra.__file__, "nothing"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "choose from" in done.stderr
