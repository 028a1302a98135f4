"""Names from files that become parts of paths: a graph's name in `graph.json` may come from anyone."""

from __future__ import annotations

from distgnn.errors import InputError

LONGEST = 200  # bytes; most file systems allow 255, and endings are added


def path_name(name: object, what: str) -> str:
    """Return `name` if it names one file inside a folder, whatever the folder.

    Args: what: what bears the name, for the message, as "graph".
    Raises: InputError where it is empty, too long, hidden, or would lead elsewhere (a slash, "..").
    """
    text = name if isinstance(name, str) else ""
    size = len(text.encode("utf-8", "surrogatepass"))
    plain = text.isprintable() and "/" not in text and "\\" not in text
    if not 0 < size <= LONGEST or text.startswith(".") or not plain:
        raise InputError(
            f"{what} name {str(name)[:LONGEST]!a} cannot name a file: expected 1 to {LONGEST} bytes without slashes, "
            "a dot in front or control characters"
        )
    return text
