"""Files that commands write for the user: refused before any work where they cannot be, replaced whole at the end."""

import json
from pathlib import Path
from typing import Any

from distgnn.errors import InputError
from distgnn.system.atomic import replace_file


def check_place(out: str | None, what: str = "") -> None:
    """Raise InputError where no file can be written to `out` (None: none is). `what`: its name in the message."""
    if out is None:
        return
    said = f"cannot write {what} {out}" if what else f"cannot write {out}"
    if Path(out).is_dir():
        raise InputError(f"{said}: it is a folder")
    if not Path(out).absolute().parent.is_dir():
        raise InputError(f"{said}: its folder does not exist")


def write_text(out: str, text: str) -> None:
    try:
        replace_file(Path(out), text.encode())
    except OSError as error:
        raise InputError(f"cannot write {out}: {error.strerror or error}") from error


def write_json(out: str, found: Any) -> None:
    write_text(out, json.dumps(found, indent=1) + "\n")
