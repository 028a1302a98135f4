"""Names machines that do not answer, while a run in which nothing moves is still waited for.

The watchdog of the ranks (watchdog.py) ends such a run, and names ranks that tell nothing new. A machine that is cut
off from the others may still reach the disk on which ranks tell: then all seem to wait for one another. So the launcher
asks the machines, once a phase has used up a quarter of the limit.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from distgnn.system.jobs.answering_hosts import SECONDS, Hosts, answering, ranks_on
from distgnn.system.jobs.status_check import limit_of, status_files
from distgnn.system.jobs.statuses import phase_seconds

ASK_AT = 0.25  # of the limit
LOOKS = 16  # in the time of the limit


class HostCheck:
    """Asks machines in doubt; `say` gets a line on each that does not answer.

    Args: run_dir: the run folder; hosts: (name, ranks) in the order of ranks.
    """

    run_dir: Path
    hosts: Hosts
    say: Callable[[str], None]

    def __init__(self, run_dir: Path, hosts: Hosts, say: Callable[[str], None]):
        self.run_dir, self.hosts, self.say = run_dir, hosts, say
        self._over = threading.Event()
        self._said: set[str] = set()
        self._told: dict[Path, tuple[str, float]] = {}  # and since when, by this machine's clock
        self._ask_again_at = 0.0

    @contextmanager
    def watched(self) -> Iterator[None]:
        """While entered, a thread looks."""
        thread = threading.Thread(target=self._watch, name="host-check", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._over.set()
            thread.join()

    def _watch(self) -> None:
        while not self._over.wait(min(max(limit_of(self.run_dir) / LOOKS, 1.0), 15.0)):
            self.look()

    def look(self) -> None:
        """Ask, if nothing has moved for long; name those that do not answer, each once."""
        limit, now = limit_of(self.run_dir), time.monotonic()
        if not limit or self._lasting(limit) < ASK_AT * limit:
            self._said.clear()
            return
        if now < self._ask_again_at:
            return
        self._ask_again_at = now + ASK_AT * limit
        found = dict(answering(self.hosts, min(SECONDS, limit / 2), self._over.is_set))
        for name, ranks in ranks_on(self.hosts).items():
            if name not in found and name not in self._said and not self._over.is_set():
                self._said.add(name)
                self.say(no_answer(name, ranks))

    def _lasting(self, limit: float) -> float:
        """How long a phase has lasted, of the ranks that tell."""
        longest, now = 0.0, time.monotonic()
        for path in status_files(self.run_dir):
            try:
                text = path.read_text(encoding="utf-8")
            except (OSError, ValueError):
                continue
            if self._told.get(path, (None, 0.0))[0] != text:
                self._told[path] = text, now if path in self._told else -limit  # dead ranks' last statuses stay there
            if now - self._told[path][1] < limit / 2 and phase_seconds(text) < float("inf"):
                longest = max(longest, phase_seconds(text))
        return longest


def no_answer(host: str, ranks: list[int]) -> str:
    """The line on a host that does not answer."""
    numbers = str(ranks[0]) if len(ranks) == 1 else f"{ranks[0]}-{ranks[-1]}"
    return f"{'ranks' if len(ranks) > 1 else 'rank'} {numbers} on host {host} does not answer"
