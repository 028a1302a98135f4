"""Extras: what a user must ask for by name, each a folder of `distgnn/extras/`. The core does not know which are there.

A folder attaches what the `EXTRA` of its `extra.py` says. That file is read with the settings: it imports
`distgnn.config.option`, this module and our errors, nothing else of ours. "module:name" is looked up in the folder when
needed.
"""

import importlib
import pkgutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from typing import Any, NamedTuple, TypeVar, get_type_hints

Config = TypeVar("Config", bound=type)
FOLDER = "distgnn.extras"


class Rule(NamedTuple):
    """A line, and the condition under which it is said; that may give further words of the line."""

    says: str
    broken: Callable[..., object]


@dataclass(frozen=True)
class Extra:
    """What a folder attaches.

    Args:
        commands: words after `distgnn` -> "module:function".
        options: name of a settings class of `distgnn.config` -> a dataclass whose fields it gets.
        choices: option -> further values of it, each with its help.
        rates: value of `optimizer` -> learning rate where none is given.
        rules: lines of "does not go together", looked at where all settings that they name are known.
        hooks: name of a point -> "module:name"; `docs/architecture.md` lists the points.
        recipes: names of recipes that train several times and choose -> ("module:function", help).
        all_rows: the setting of `Schedule` with which a model sees halo rows, too.
    """

    commands: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, type] = field(default_factory=dict)
    choices: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    rates: Mapping[str, float] = field(default_factory=dict)
    rules: tuple[Rule, ...] = ()
    hooks: Mapping[str, str] = field(default_factory=dict)
    recipes: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    all_rows: str = ""


@cache
def extras() -> dict[str, Extra]:
    """The extras that are here, by name."""
    folders = importlib.import_module(FOLDER).__path__
    names = sorted(one.name for one in pkgutil.iter_modules(folders) if one.ispkg)
    return {name: importlib.import_module(f"{FOLDER}.{name}.extra").EXTRA for name in names}


def here() -> str:
    """For a line about a word that nobody knows: it may be of an extra that is not here."""
    return f"extras here: {', '.join(extras()) or 'none'}"


def attached(point: str, config: Any = None) -> Iterator[Any]:
    """What extras have at a point; with `config`, those that are asked for there."""
    for name in extras() if config is None else asked_for(point, config):
        if point in extras()[name].hooks:
            yield load(name, extras()[name].hooks[point])


def asked_for(point: str, config: Any) -> list[str]:
    """Extras that have something at a point, and one of whose settings in `config` is not as it was declared."""
    changed, kind = touched(config), type(config)
    return [name for name, extra in extras().items() if point in extra.hooks and names_of(extra, kind) & changed]


def names_of(extra: Extra, config: type) -> set[str]:
    """Names of the settings that an extra attaches to a settings class."""
    return {one.name for one in fields(extra.options[config.__name__])} if config.__name__ in extra.options else set()


def all_names(config: type) -> set[str]:
    """Names of the settings that all extras attach to a settings class."""
    return {name for extra in extras().values() for name in names_of(extra, config)}


def sees_all_rows(schedule: Mapping[str, Any]) -> bool:
    """Does a model see halo rows, too, by the settings of a `Schedule`?"""
    return any(bool(schedule.get(extra.all_rows)) for extra in extras().values())


def load(name: str, place: str) -> Any:
    """What `place`, "module:name", is in the folder of an extra."""
    module, _, attribute = place.partition(":")
    return getattr(importlib.import_module(f"{FOLDER}.{name}.{module}"), attribute)


def commands() -> dict[str, Callable[[], Any]]:
    """What loads the function of each command that extras have, by the word that is typed."""
    return {
        word: lambda name=name, place=place: load(name, place)  # type: ignore[misc]
        for name, extra in extras().items()
        for word, place in extra.commands.items()
    }


def searches() -> dict[str, str]:
    """Recipes that train several times and choose: their help."""
    return {name: text for extra in extras().values() for name, (_, text) in extra.recipes.items()}


def search_of(recipe: str | None) -> Callable[..., Any] | None:
    """What such a recipe does on each rank, in place of one training; None of other recipes."""
    of = ((name, extra.recipes.get(recipe or "")) for name, extra in extras().items())
    return next((load(name, found[0]) for name, found in of if found), None)


def extended(config: Config) -> Config:
    """Class decorator below `@dataclass`: the fields and choices that extras have for these settings."""
    for name, value in list(vars(config).items()):
        if hasattr(value, "metadata"):
            setattr(config, name, _with_choices(value, value.metadata["name"] or name))
    for name, extra in extras().items():
        if (more := extra.options.get(config.__name__)) is not None:
            types = get_type_hints(more)
            for one in fields(more):
                config.__annotations__[one.name] = types[one.name]
                panel = {"panel": f"Extra: {name}"}
                setattr(config, one.name, field(default=one.default, metadata=one.metadata | panel))
    return config


def _with_choices(one: Any, name: str) -> Any:
    more = {value: says for extra in extras().values() for value, says in extra.choices.get(name, {}).items()}
    if not more:
        return one
    texts = (f"{value}: {says}" for value, says in more.items())
    changed = {"choices": (*one.metadata["choices"], *more), "help": f"{one.metadata['help']} {'; '.join(texts)}."}
    return field(default=one.default, metadata=one.metadata | changed)


def part_of(config: Any, kind: type) -> Any:
    """The settings that an extra has attached to `config`, as its own dataclass."""
    return kind(**{one.name: getattr(config, one.name) for one in fields(kind)})


def touched(config: Any) -> set[str]:
    """Names of the settings that extras have attached to `config` and that are not as they were declared."""
    attached_here = all_names(type(config))
    return {
        one.name for one in fields(config) if one.name in attached_here and getattr(config, one.name) != one.default
    }
