"""Options made from the dataclasses of `distgnn.config`: a new field of a dataclass is a new option.

```
@with_options
def command(parts: str, model: ModelConfig, …)      becomes      distgnn command PARTS --model … --hidden-feats … …
```
Fields without a heading are rarely needed: all of them are values of one option, `--set NAME=VALUE`.
"""

import dataclasses
import functools
import inspect
import operator
import typing
from collections.abc import Callable
from typing import Annotated, Any

import typer

from distgnn.config.option import help_of, option_name, rarely_set, read_settings_of_words

PLAIN = (str, int, float, bool, str | None, int | None, float | None)  # what the command line reads as it is
RANKS, SET = "Ranks and memory", "set"
Threads = Annotated[int | None, typer.Option(help="Threads per rank (default: cores / ranks).", rich_help_panel=RANKS)]
Quiet = Annotated[bool, typer.Option(help="No progress and no table.", rich_help_panel="Output")]
Silent = Annotated[bool, typer.Option(help="Print nothing.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.", rich_help_panel="Output")]


def in_panel(panel: str, default: Any, help: str) -> Any:
    """An option that a command has besides the dataclasses' options, under one of their headings."""
    return typer.Option(default, help=help, rich_help_panel=panel)


class Only:
    """Which fields of a dataclass are options of a command; defaults that are not the dataclass's are given by name."""

    def __init__(self, *names: str, **defaults: Any):
        self.defaults: dict[str, Any] = dict.fromkeys(names, dataclasses.MISSING) | defaults


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """Replace each parameter that is annotated with a settings dataclass by the options of its fields.

    `Annotated[ModelConfig, Only("norm", num_layers=2)]` takes some of the fields.
    """
    hints = typing.get_type_hints(command, include_extras=True)
    parameters: list[inspect.Parameter] = []
    groups: dict[str, tuple[type, list[inspect.Parameter]]] = {}
    whole: list[type] = []
    for parameter in inspect.signature(command).parameters.values():
        kind, only = _dataclass_of(hints[parameter.name])
        if kind is None:
            parameters.append(parameter.replace(annotation=hints[parameter.name], kind=parameter.KEYWORD_ONLY))
            continue
        groups[parameter.name] = kind, _options_of(kind, only)
        parameters += groups[parameter.name][1]
        whole += [kind] if only is None else []
    if rare := [name for kind in whole for name in rarely_set(kind)]:
        parameters.append(inspect.Parameter(SET, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=_set(rare)))

    @functools.wraps(command)
    def run(**values: Any) -> None:
        made, rest = {}, read_settings_of_words(values.pop(SET, None) or (), whole)
        for name, (kind, options) in groups.items():
            given = {option.name: values.pop(option.name) for option in options} | rest
            fields = {
                field.name: given[option_name(field)]
                for field in dataclasses.fields(kind)
                if option_name(field) in given
            }
            made[name] = kind(**fields)
        command(**values, **made)

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    run.rarely_set = rare  # type: ignore[attr-defined]  # for a line about an option that there is not
    return run


def given_options(context: typer.Context) -> set[str]:
    """Names of the options that stand on the command line."""
    sources = ((name, context.get_parameter_source(name)) for name in context.params)
    given = {name for name, source in sources if source is not None and source.name == "COMMANDLINE"}
    return given | {word.partition("=")[0] for word in context.params.get(SET) or ()}


def _set(rare: list[str]) -> Any:
    """The option for what has none of its own."""
    words = f"A setting that is rarely needed, by its name in Python; again for another. {', '.join(rare)}."
    return Annotated[list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help=words)]


def _dataclass_of(annotation: Any) -> tuple[type | None, Only | None]:
    kind, *extras = typing.get_args(annotation) if typing.get_origin(annotation) is Annotated else (annotation,)
    if not dataclasses.is_dataclass(kind):
        return None, None
    return typing.cast(type, kind), next((extra for extra in extras if isinstance(extra, Only)), None)


def _options_of(kind: type, only: Only | None) -> list[inspect.Parameter]:
    types, options = typing.get_type_hints(kind), []
    for field in dataclasses.fields(kind):
        default = field.default
        if only is None and not field.metadata["panel"]:
            continue
        if only is not None:
            if field.name not in only.defaults:
                continue
            default = field.default if only.defaults[field.name] is dataclasses.MISSING else only.defaults[field.name]
        completed = _starting(field.metadata["choices"]) if field.metadata["choices"] else None
        panel = field.metadata["panel"] or None
        shown = typer.Option(help=help_of(field), rich_help_panel=panel, autocompletion=completed)
        # Not `Annotated[…]`, which type checkers read as a type; its `__class_getitem__` is gone in Python 3.13.
        read = types[field.name] if types[field.name] in PLAIN else str | None  # a list is written as text, too
        annotation: Any = operator.getitem(Annotated, (read, shown))
        name = option_name(field)
        options.append(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation))
    return options


def _starting(choices: tuple[str, ...]) -> Callable[[str], list[str]]:
    """What the shell's completion offers for a value."""

    def starting(incomplete: str) -> list[str]:
        return [choice for choice in choices if choice.startswith(incomplete)]

    return starting
