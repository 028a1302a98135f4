"""Every public name of `import distgnn as dg` is what it says, however often and after whatever import it is used."""

import ast
import importlib
from pathlib import Path

import distgnn


def test_type_checkers_see_the_names_that_there_are():
    """They read the imports below TYPE_CHECKING; the program takes `_PLACES`."""
    tree = ast.parse(Path(distgnn.__file__).read_text())
    block = next(one for one in tree.body if isinstance(one, ast.If) and ast.unparse(one.test) == "TYPE_CHECKING")
    shown = {one.asname: line.module for line in block.body for one in line.names}
    assert shown == distgnn._PLACES | dict.fromkeys(distgnn._MODULES, "distgnn")


def test_a_name_never_turns_into_the_module_that_holds_it():
    first = {name: getattr(distgnn, name) for name in distgnn.__all__}
    for place in set(distgnn._PLACES.values()):
        importlib.import_module(place)
    assert {name: getattr(distgnn, name) for name in distgnn.__all__} == first
