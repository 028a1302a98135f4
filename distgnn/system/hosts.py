"""Several machines without a batch system: a file of hosts becomes the options of `mpiexec`.

node1            one rank
node2:2          two ranks (also `node2 slots=2`, as Open MPI writes it)
# a comment
"""

import re
import tempfile

from distgnn.errors import InputError
from distgnn.system.regular_file import read_text

RANKS = r"(?:\s*:\s*(?P<ranks>\d{1,5})|\s+slots\s*=\s*(?P<slots>\d{1,5}))?"
LINE = re.compile(r"(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)" + RANKS)


def read_hosts(path: str) -> list[tuple[str, int]]:
    """(host, ranks) of each line, in order.

    Raises: InputError naming the line that is no host.
    """
    try:
        lines = read_text(path).splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: no hosts can be read from it ({error})") from error
    hosts = []
    for number, line in enumerate(lines, 1):
        text = line.split("#")[0].strip()
        if not text:
            continue
        found = LINE.fullmatch(text)
        ranks = int((found["ranks"] or found["slots"] or 1) if found else 0)
        if found is None or ranks < 1:
            raise InputError(f"{path}, line {number}: expected NAME or NAME:RANKS, found {text[:60]!r}")
        hosts.append((found["name"], ranks))
    if not hosts:
        raise InputError(f"{path}: names no host")
    return hosts


def host_options(hosts: list[tuple[str, int]], flavor: str, exported: dict[str, str]) -> list[str]:
    """Options that start ranks on these hosts, in this order, with the variables `exported` set on every one.

    Notes: Hydra (MPICH, Intel) hands the whole environment on; Open MPI only what it is told to.
    """
    if flavor == "openmpi":
        named = ",".join(f"{name}:{ranks}" for name, ranks in hosts)
        return ["--host", named, *(word for name in exported for word in ("-x", name))]
    with tempfile.NamedTemporaryFile("w", prefix="distgnn-hosts-", suffix=".txt", delete=False) as stream:
        stream.write("".join(f"{name}:{ranks}\n" for name, ranks in hosts))
    return ["-f", stream.name]
