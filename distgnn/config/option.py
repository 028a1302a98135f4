"""One declaration per setting: a dataclass field with its default, its help text and the values it takes.

The command line makes an option of each such field (distgnn/cli/options.py), and `check_values` checks the values: a
new setting is one new field.
"""

import dataclasses
import difflib
from collections.abc import Iterable, Iterator, Mapping
from numbers import Integral, Real
from typing import Any, TypeVar, get_args, get_type_hints

from distgnn.errors import InputError

Config = TypeVar("Config", bound=type)
DTYPES = ("float32", "float64", "bfloat16")
KINDS: dict[type, tuple[type, str]] = {
    bool: (bool, "True or False"),
    int: (Integral, "a whole number"),
    float: (Real, "a number"),
    str: (str, "a text"),
}


def option(
    default: Any,
    help: str,
    *,
    panel: str,
    choices: tuple[str, ...] = (),
    least: float | None = None,
    default_text: str = "",
    name: str = "",
    title: str = "",
) -> Any:
    """A field of a settings dataclass.

    Args:
        help: one sentence for the command line and the documentation.
        panel: heading of the group that the option is shown in; empty: a command has it as `--set NAME=VALUE`.
        choices: the values it may have; least: the smallest number (None is allowed where it is the default).
        default_text: says what a default of None means.
        name: of the option, where it is not the field's.
        title: what messages call it, where it is not the option's name.
    """
    metadata = {"help": help, "panel": panel, "choices": choices, "least": least, "default_text": default_text}
    return dataclasses.field(default=default, metadata=metadata | {"name": name, "title": title})


def option_name(field: "dataclasses.Field[Any]") -> str:
    """The name that a field has on the command line, with underscores."""
    return field.metadata["name"] or field.name


def options_of(config: Any) -> dict[str, Any]:
    """The values of a settings object by the names of its options."""
    return {option_name(field): getattr(config, field.name) for field in dataclasses.fields(config)}


def help_of(field: "dataclasses.Field[Any]") -> str:
    """The help text with choices and with the meaning of a default of None."""
    text, choices, default = (field.metadata[key] for key in ("help", "choices", "default_text"))
    text += f" One of: {', '.join(choices)}." if choices else ""
    return text + (f" (default: {default})" if default else "")


def documented(config: Config) -> Config:
    """Class decorator: append the help text of each field to the docstring."""
    lines = (f"        {field.name}: {help_of(field)}" for field in dataclasses.fields(config))
    config.__doc__ = f"{config.__doc__}\n\n    Args:\n" + "\n".join(lines)
    return config


def check_values(config: Any) -> None:
    """Raise InputError for the first field of a settings object whose value is none of its choices, or too small."""
    for field in dataclasses.fields(config):
        value, choices, least = getattr(config, field.name), field.metadata["choices"], field.metadata["least"]
        if value is None and field.default is None:
            continue
        if choices:
            check_choice(field.metadata["title"] or option_name(field), value, choices)
        if least is not None and not value >= least:
            raise InputError(f"{option_name(field)} is {value}: expected at least {least}")


def wrong_kinds(config: Any, values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Names of values that are of another kind than the fields of a settings object, with the kind in words."""
    hints = get_type_hints(type(config))
    for name, value in values.items():
        taken = get_args(hints[name]) or (hints[name],) if name in hints else ()
        known = [KINDS[one] for one in taken if one in KINDS]
        right = any(isinstance(value, kind) and isinstance(value, bool) == (kind is bool) for kind, _ in known)
        if known and value is not None and not right:
            yield name, " or ".join(words for _, words in known)


def rarely_set(kind: type) -> list[str]:
    """Names of the fields of a settings dataclass that `--set` takes."""
    return [field.name for field in dataclasses.fields(kind) if not field.metadata["panel"]]


def read_settings_of_words(words: Iterable[str], kinds: Iterable[type]) -> dict[str, Any]:
    """Values of `--set NAME=VALUE`, by name, of those fields of settings dataclasses that are no options.

    Raises: InputError for a word of another form, an unknown name, or a value of another kind.
    """
    kinds = tuple(kinds)
    hints = {name: get_type_hints(kind)[name] for kind in kinds for name in rarely_set(kind)}
    options = {option_name(field) for kind in kinds for field in dataclasses.fields(kind)} - hints.keys()
    values: dict[str, Any] = {}
    for word in words:
        name, sign, text = word.partition("=")
        if not sign:
            raise InputError(f"--set {word}: expected NAME=VALUE")
        if name in options:
            raise InputError(f"--set {word}: this is an option of its own, --{name.replace('_', '-')}")
        if name not in hints:
            raise InputError(f"--set {word}: choose from {', '.join(hints)}{did_you_mean(name, hints)}")
        kind = next(one for one in (get_args(hints[name]) or (hints[name],)) if one in KINDS)
        try:
            values[name] = {"True": True, "False": False}[text.capitalize()] if kind is bool else kind(text)
        except (KeyError, ValueError):
            raise InputError(f"--set {word}: expected {KINDS[kind][1]}") from None
    return values


def check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    """Raise InputError unless `value` is one of `choices`."""
    if value not in choices:
        raise InputError(f"unknown {name} {value!r}: choose from {', '.join(choices)}{did_you_mean(value, choices)}")


def did_you_mean(value: str, names: Iterable[str]) -> str:
    """A question that names the most similar of `names`, or nothing where none is similar."""
    similar = difflib.get_close_matches(str(value)[:100], list(names), n=1)
    return f" (did you mean {similar[0]}?)" if similar else ""
