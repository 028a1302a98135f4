"""One declaration per setting: a dataclass field with its default, its help text and the values it takes.

The command line makes an option of each such field (distgnn/cli/options.py), and `check_choices` checks the values: a
new setting is one new field.
"""

import dataclasses
from typing import Any, TypeVar

from distgnn.config.options.choices import check_choice

Config = TypeVar("Config", bound=type)


def option(
    default: Any,
    help: str,
    *,
    panel: str,
    choices: tuple[str, ...] = (),
    default_text: str = "",
    name: str = "",
    title: str = "",
) -> Any:
    """A field of a settings dataclass.

    Args:
        help: one sentence for the command line and the documentation.
        panel: heading of the group that the option is shown in.
        choices: the values it may have (None is allowed where it is the default).
        default_text: says what a default of None means.
        name: of the option, where it is not the field's.
        title: what messages call it, where it is not the option's name.
    """
    metadata = {"help": help, "panel": panel, "choices": choices, "default_text": default_text}
    metadata |= {"name": name, "title": title}
    return dataclasses.field(default=default, metadata=metadata)


def option_name(field: "dataclasses.Field[Any]") -> str:
    """The name that a field has on the command line, with underscores."""
    return field.metadata["name"] or field.name


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


def check_choices(config: Any) -> None:
    """Raise InputError for the first field of a settings object whose value is not among its choices."""
    for field in dataclasses.fields(config):
        value, choices = getattr(config, field.name), field.metadata["choices"]
        if choices and not (value is None and field.default is None):
            check_choice(field.metadata["title"] or option_name(field), value, choices)
