"""Whether any rank of a run still writes its status, as the launcher sees it.

Ranks watch each other (watchdog.py). Where all of them are stopped, or the only one, none is left to do so.
"""

import sys
import time
from pathlib import Path

from distgnn.system.jobs.watchdog import HUNG, patience

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PAUSE_SECONDS = 5.0  # between two looks: this process did not run itself
LOOK_SECONDS = 2.0  # of the limit, a fifth at most: looks are a second apart


class StatusCheck:
    """Looks at the ranks' statuses of one start.

    Args: run_dir: the run folder, which may not exist yet; shortest: seconds without news at least. Of ranks on other
        machines this one may hear a minute late, as network file systems keep what they know of a folder.
    """

    run_dir: Path
    shortest: float

    exit_code = HUNG

    def __init__(self, run_dir: Path, shortest: float = 0.0):
        self.run_dir, self.shortest = run_dir, shortest
        self._old = self._told = _statuses(run_dir)  # of ranks that are gone
        self._since = self._looked = time.monotonic()

    def look(self) -> str | None:
        """What to say of ranks that have told nothing for the limit; None where one has, or none tells yet."""
        now, told, limit = time.monotonic(), _statuses(self.run_dir), limit_of(self.run_dir)
        alive = told != self._told or told.items() <= self._old.items() or now - self._looked > PAUSE_SECONDS
        if alive or not limit:
            self._told, self._since = told, now
        self._looked = now
        if not limit or now - self._since < max(patience(limit) - min(LOOK_SECONDS, limit / 5), self.shortest):
            return None
        return f"no rank has told what it does for {now - self._since:.3g} s (--timeout {limit:g}): all are stopped"


def limit_of(run_dir: Path) -> float:
    """--timeout of the run; 0 where there is none, or no run yet."""
    try:
        return float(tomllib.loads((run_dir / "config.toml").read_text(encoding="utf-8"))["train"]["timeout"])
    except (OSError, ValueError, KeyError, TypeError, OverflowError):
        return 0.0


def status_files(run_dir: Path) -> list[Path]:
    """Files in which ranks tell what they do; the folder may hold runs of several seeds."""
    return [path for pattern in ("logs", "seed-*/logs") for path in run_dir.glob(f"{pattern}/rank-*.status")]


def _statuses(run_dir: Path) -> dict[Path, tuple[int, int]]:
    """What changes with each word of a rank."""
    found = {}
    for path in status_files(run_dir):
        try:
            made = path.stat()
        except OSError:
            continue
        found[path] = (made.st_ino, made.st_mtime_ns)
    return found
