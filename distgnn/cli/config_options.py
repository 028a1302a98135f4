"""Options of a command from the fields of a configuration: each is spelled once, where its default and meaning are."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection
from dataclasses import fields
from typing import Any, get_type_hints

import typer


def with_options(config: type, skip: Collection[str] = ()) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Put an option for each field of a configuration in the place of `**options` of a command.

    Args: config: a dataclass; the `help` in a field's metadata is the option's. A field whose default is None takes
        text. skip: fields that are no options.
    """
    chosen = [each for each in fields(config) if each.name not in skip]

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        hints = get_type_hints(command)
        given = list(inspect.signature(command).parameters.values())
        at = next(i for i, each in enumerate(given) if each.kind is each.VAR_KEYWORD)
        made = [_parameter(each.name, each.default, each.metadata["help"]) for each in chosen]
        known = [
            each.replace(annotation=hints[each.name], kind=each.KEYWORD_ONLY) for each in given[:at] + given[at + 1 :]
        ]
        known[at:at] = made

        def run(**arguments: Any) -> None:
            command(**arguments)

        run.__name__, run.__doc__ = command.__name__, command.__doc__
        run.__annotations__ = {each.name: each.annotation for each in known} | {"return": None}
        run.__signature__ = inspect.Signature(known)  # type: ignore[attr-defined]  # what typer reads
        return run

    return decorate


def _parameter(name: str, default: Any, about: str) -> inspect.Parameter:
    kind: Any = str | None if default is None else type(default)
    option = typer.Option(default, help=about)
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=option, annotation=kind)
