"""Every public name of `import distgnn as dg` is what it says, however often and after whatever import it is used."""

import importlib

import distgnn


def test_a_name_never_turns_into_the_module_that_holds_it():
    first = {name: getattr(distgnn, name) for name in distgnn.__all__}
    for place in set(distgnn._PLACES.values()):
        importlib.import_module(place)
    assert {name: getattr(distgnn, name) for name in distgnn.__all__} == first
