"""Reading config.toml: sections of settings, and whether each value is of the kind that the setting has."""

import sys
from pathlib import Path
from typing import Any

from distgnn.errors import RunError
from distgnn.system.regular_file import read_text

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

SECTIONS = ("train", "model", "data", "run")
LARGEST_INT = 2**63 - 1


def read_sections(file: str | Path) -> dict[str, dict[str, Any]]:
    """The sections of a config.toml.

    Raises:
        RunError: when it cannot be read.
    """
    try:
        return parse_sections(read_text(file))
    except (ValueError, RecursionError, OSError) as error:
        reason = error.strerror if isinstance(error, OSError) else " ".join(str(error).split())
        raise RunError(f"{file} cannot be read, or is damaged: {reason}") from error


def parse_sections(text: str) -> dict[str, dict[str, Any]]:
    """The sections of a config.toml from its text. Raises: ValueError, RecursionError where it has another form."""
    content = tomllib.loads(text)
    for name in SECTIONS:
        if not isinstance(content.get(name, {}), dict):
            raise ValueError(f"{name} is no section")
    return content


def check_types(file: str | Path, section: str, values: dict[str, Any], defaults: dict[str, Any]) -> None:
    """Raise RunError for a setting whose value is not of the kind of its default; a setting without one is text."""
    for name, value in values.items():
        if name in defaults and not _same_kind(value, defaults[name]):
            raise RunError(f"{file} is damaged: [{section}] {name} is {str(value)[:40]!r}")


def _same_kind(value: Any, default: Any) -> bool:
    if isinstance(value, bool) or isinstance(default, bool):
        return isinstance(value, bool) and isinstance(default, bool)
    if isinstance(value, int) and abs(value) > LARGEST_INT:
        return False
    if isinstance(default, float):
        return isinstance(value, int | float)
    return isinstance(value, str if default is None else type(default))
