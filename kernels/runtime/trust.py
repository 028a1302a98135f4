"""Whose machine code is executed: a folder of compiled kernels that somebody else can write is not read.

numba's cache is a folder of pickles. Trusted is what belongs to this user, to root, or to the owner of the program's
own files (who decides what is executed anyway), and what nobody else can write: neither everybody, nor a group with
other members. A group of one's own, as many systems give every user, is no other.
"""

import functools
import os
import stat

try:
    import grp
    import pwd
except ImportError:  # pragma: no cover - Windows
    grp = pwd = None  # type: ignore[assignment]


@functools.cache
def doubt(folder: str, source: str) -> str | None:
    """Why the kernels in `folder` may be somebody else's; None where there is no reason to think so.

    Args: source: file of the program's own, whose owner is trusted.
    """
    if grp is None:
        return None
    try:
        return doubt_of(os.stat(folder), source, "the folder")
    except OSError:
        return None


def doubt_of(found: os.stat_result, source: str, what: str) -> str | None:
    """The same of a folder or an open file, which a reason calls `what`. Raises: OSError without the source."""
    if grp is None:
        return None
    if found.st_uid not in (os.geteuid(), 0, os.stat(source).st_uid):
        return f"{what} belongs to {_user(found.st_uid)}"
    if found.st_mode & stat.S_IWOTH:
        return "everybody can write there"
    if found.st_mode & stat.S_IWGRP and not _own_group(found.st_gid, found.st_uid):
        return f"group {found.st_gid} can write there"
    return None


def _user(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"


def _own_group(gid: int, uid: int) -> bool:
    """Whether a group has no members but its owner."""
    try:
        group, name = grp.getgrgid(gid), pwd.getpwuid(uid).pw_name
    except KeyError:
        return False
    return group.gr_name == name and set(group.gr_mem) <= {name}
