"""Write what the program's own help says into the documentation: `python tests/house/make_command_line.py`.

The core's commands and options go into docs/guide/command-line.md, those of an extra into its page in docs/extras.
"""

import inspect
import os
import re
import sys
import typing
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "guide" / "command-line.md"
EXTRAS = ROOT / "docs" / "extras"
MADE = re.compile(r"(<!-- options -->\n).*?(?=<!-- end -->)", re.DOTALL)
HEAD = """# Command line

Generated from `--help` by `tests/house/make_command_line.py`; `make docs` writes it anew.
Exit codes: [running](running.md#signals-and-exit-codes).
"""


def page() -> str:
    """The page as the program is now."""
    os.environ.setdefault("COLUMNS", "120")
    sys.path.insert(0, str(ROOT))
    import typer

    from distgnn.cli.main import make_app
    from distgnn.config.extras import commands

    group = typer.main.get_command(make_app())
    lines = [HEAD]
    for name in sorted(group.commands.keys() - commands().keys()):
        lines += _command(name, group.commands[name])
    return "\n".join(lines)


def extra_page(name: str) -> str:
    """The page of an extra: what it adds to the command line stands between two comments."""
    import typer

    from distgnn.cli.main import make_app
    from distgnn.config.extras import extras
    from distgnn.config.together import in_capitals

    group, extra, lines = typer.main.get_command(make_app()), extras()[name], []
    for word in extra.commands:
        lines += _command(word, group.commands[word])
    train = group.commands["train"]
    lines += _panels(train, lambda panel: panel == f"Extra: {name}")
    for option, values in extra.choices.items():
        lines += [*(f"- `--{option.replace('_', '-')} {value}`: {says}" for value, says in values.items()), ""]
    if extra.rules:
        lines += [
            "Refused with one of these lines:",
            "",
            *(f"- `{line}`" for line in map(in_capitals, extra.rules)),
            "",
        ]
    text = "\n".join(lines)
    return MADE.sub(lambda match: match[1] + text, (EXTRAS / f"{name}.md").read_text())


def _command(name: str, command) -> Iterator[str]:
    arguments = [one for one in command.params if one.param_type_name == "argument"]
    words = " ".join(_argument(one) for one in arguments)
    yield f"## distgnn {name}\n"
    yield f"`distgnn {name}{' ' if words else ''}{words} [options]`\n"
    yield _plain(command.help or "") + "\n"
    from distgnn.config.extras import extras
    from distgnn.config.together import in_capitals

    yield from _panels(command, lambda panel: not panel.startswith("Extra: "))
    if command.epilog:
        first, *others = command.epilog.split("\n\n")
        yield f"{first}\n"
        of_extras = {in_capitals(rule) for extra in extras().values() for rule in extra.rules}
        yield from (f"- `{line}`" for line in others if line not in of_extras)
        yield ""


def _panels(command, shown) -> Iterator[str]:
    """A table for each heading of the help that is `shown`."""
    signature = inspect.signature(command.callback, eval_str=True)
    types = {key: value.annotation for key, value in signature.parameters.items()}
    panels: dict[str, list] = {}
    for one in command.params:
        if not getattr(one, "hidden", False):
            default = "Arguments" if one.param_type_name == "argument" else "Options"
            panels.setdefault(getattr(one, "rich_help_panel", None) or default, []).append(one)
    for panel, parameters in panels.items():
        if not shown(panel):
            continue
        yield f"| {panel} | | default | |\n|---|---|---|---|"
        yield from (_row(one, types) for one in parameters)
        yield ""


def _argument(one) -> str:
    name = (one.metavar or one.name or "").strip("{}<>[].").upper()
    return f"{name}…" if one.nargs == -1 else name


def _row(one, types: dict[str, object]) -> str:
    if one.param_type_name == "argument":
        names = f"`{_argument(one)}`"
    else:
        names = ", ".join(f"`{name}`" for name in [*one.opts, *one.secondary_opts])
    cells = (names, _kind(one, types), _default(one), _plain(getattr(one, "help", None) or ""))
    return "| " + " | ".join(cells) + " |"


def _kind(one, types: dict[str, object]) -> str:
    """What an option takes: its choices, or the kind of value; nothing for a switch."""
    kind = types.get(one.name, str)
    while typing.get_origin(kind) not in (None, typing.Literal):
        kind = typing.get_args(kind)[0]
    if typing.get_origin(kind) is typing.Literal:
        return " \\| ".join(map(str, typing.get_args(kind)))
    return {bool: "", str: "text", int: "integer", float: "number"}.get(kind, "text")


def _default(one) -> str:
    if one.required:
        return "required"
    value = one.default
    if value is None or callable(value) or value == "" or (getattr(one, "is_flag", False) and not value):
        return ""
    return "on" if value is True else str(getattr(value, "value", value))


def _plain(text: str) -> str:
    """One line, as Markdown table cells can hold it; a form feed and what follows is left out of help, too."""
    line = re.sub(r"\s+", " ", text.split("\f")[0]).strip()
    return line.replace("|", "\\|").replace("\\[", "[").replace("<", "&lt;")


if __name__ == "__main__":
    PAGE.write_text(page())
    for file in sorted(EXTRAS.glob("*.md")):
        file.write_text(extra_page(file.stem))
