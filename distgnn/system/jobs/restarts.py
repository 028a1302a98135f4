"""A training run that goes on after a fault: its ranks are started again, from the newest checkpoint.

fault                                    exit code of the ranks            started again
a rank, a proxy or a host dies           9, 137, 139, 255 …                yes
nothing moves (a stopped rank)           124                               yes
MPI does not start                       142, 14 (watchdog.py)          yes
a traceback of ours                      1                                 until it comes twice at the same checkpoint
bad input, NaN, no memory, full disk     2                                 no: it would come again
a signal asked the run to stop           128 + SIGHUP, INT, USR1, TERM     no

Who is started next time is for a `Regroup` to say (cli/places.py).
"""

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from distgnn.errors import InputError
from distgnn.system.output import say

LONGEST_PAUSE = 60.0
OWN_FAILURE = 1
ASKED_TO_STOP = tuple(128 + number for number in (signal.SIGHUP, signal.SIGINT, signal.SIGUSR1, signal.SIGTERM))


class Team(NamedTuple):
    """What is started: the arguments of `train`, and the function that runs ranks with them until they end."""

    words: list[str]
    start: Callable[[list[str]], int]


# Who is started next, told how many failures came in a row without a new checkpoint.
Regroup = Callable[[int], Team]


def run_again(
    words: list[str],
    start: Callable[[list[str]], int],
    limit: int,
    run_dir: Path,
    *,
    regroup: Regroup | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> int:
    """Start `train WORDS`, again after each fault but at most `limit` times, and return the last exit code.

    Args: start: runs the ranks with these arguments until they end; run_dir: that they go on in.

    Notes: pauses of 1, 2, 4 … seconds, at most 60, while no new checkpoint comes; then from 1 again.
    """
    before, team, pause, fruitless = _identity(run_dir), Team(words, start), 1.0, 0
    begun = False
    last: tuple[int, str] | None = None
    for count in range(1, limit + 2):
        began = time.monotonic()
        code = team.start(resumed(team.words) if begun else team.words)
        newest = newest_checkpoint(run_dir)
        if code in (0, 2, *ASKED_TO_STOP):
            return code
        if count > limit:
            break
        if code == OWN_FAILURE and (code, newest) == last:
            return code
        again = last is not None and last[1] == newest
        pause, fruitless = (min(2 * pause, LONGEST_PAUSE), fruitless + 1) if again else (1.0, 1)
        last = (code, newest)
        # Ranks that died before they made the run folder have not replaced an old one yet.
        begun = begun or "--resume" in words or _identity(run_dir) != before
        say(
            f"the ranks ended with exit code {code} after {time.monotonic() - began:.0f} s; "
            f"restart {count} of {limit} in {pause:.0f} s from {newest or 'the beginning'}"
        )
        sleep(pause)
        if regroup is not None:
            team = regroup(fruitless)
    say(f"the ranks ended with exit code {code}: all {limit} restarts (--restarts) are used up")
    return code


def resumed(words: list[str]) -> list[str]:
    """The arguments of `train` that go on with the run that these began: the run folder has all settings."""
    gone = ("--overwrite", "--no-overwrite", "--resume", "--no-resume")
    first, *others = (word for word in without("--config", words) if word not in gone)
    return [first, "--resume", *others]


def without(option: str, words: list[str]) -> list[str]:
    """The words of a command without an option and its value."""
    kept: list[str] = []
    skip = False
    for word in words:
        if not skip and word != option and not word.startswith(f"{option}="):
            kept.append(word)
        skip = word == option and not skip
    return kept


def with_run_dir(words: list[str], run_dir: str) -> list[str]:
    return [words[0], "--run-dir", run_dir, *words[1:]]


def run_dir_in(words: list[str]) -> Path:
    """The run folder that the arguments of `train` name. Raises: InputError where they name none."""
    for word, value in zip(words, [*words[1:], ""], strict=True):
        if word == "--run-dir" and value:
            return Path(value)
        if word.startswith("--run-dir="):
            return Path(word.partition("=")[2])
    raise InputError("--restarts needs --run-dir after train: ranks go on from the checkpoints there")


def newest_checkpoint(run_dir: Path) -> str:
    """Path of the newest checkpoint inside a run folder, which may hold runs of several seeds; empty where none is."""
    found = [
        path
        for pattern in ("checkpoint", "seed-*/checkpoint", "fold-*/checkpoint")
        for path in run_dir.glob(f"{pattern}/epoch-*")
    ]
    # Two within a tick of the system's clock (some ms) have one time.
    return str(max(found, key=lambda path: (path.stat().st_mtime_ns, path.name)).relative_to(run_dir)) if found else ""


def _identity(run_dir: Path) -> tuple[int, int] | None:
    """What changes when the run folder is made anew."""
    try:
        found = os.stat(run_dir / "config.toml")
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns
