"""A training job that faults are put into: its launcher's words with their times, its epochs, its processes by kind."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

MARK = "DISTGNN_FAULTS"
NOTICED = re.compile(r"the ranks ended with exit code .* from (?:checkpoint/epoch-(\d+)|the beginning)")
REGROUPED = "going on with"
SHARED_MEMORY = Path("/dev/shm")


class Job:
    """A launcher and what it started.

    Args: words: of `distgnn`; folder: the run folder; before: words before the program's; variables: environment.
    """

    def __init__(self, words: list, folder: Path, before: tuple = (), variables: dict | None = None):
        self.folder = folder
        environment = os.environ | (variables or {}) | {MARK: str(os.getpid())}
        full = [*before, sys.executable, "-m", "distgnn.cli", *map(str, words)]
        self.launcher = subprocess.Popen(full, env=environment, stderr=subprocess.PIPE, text=True, errors="replace")
        self.said: list[tuple[float, str]] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        for line in self.launcher.stderr:
            self.said.append((time.monotonic(), line.rstrip()))

    def epochs(self) -> int:
        try:
            return (self.folder / "metrics.jsonl").read_bytes().count(b"\n")
        except OSError:
            return 0

    def file(self) -> int:
        """What changes when metrics.jsonl is replaced."""
        try:
            return (self.folder / "metrics.jsonl").stat().st_ino
        except OSError:
            return 0

    def over(self) -> bool:
        return self.launcher.poll() is not None

    def told(self, since: int, what: Callable[[str], object]) -> list[tuple[float, object]]:
        """(time, what was found) in the launcher's words from number `since` on."""
        return [(at, found) for at, line in self.said[since:] if (found := what(line))]


def processes() -> dict[str, list[int]]:
    """Processes of all jobs of this script by what they are."""
    mark, found = f"{MARK}={os.getpid()}".encode(), {"rank": [], "starter": [], "proxy": [], "other": []}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "environ").read_bytes().split(b"\0")
            state = (folder / "stat").read_text().rpartition(")")[2].split()[0]
            command = (folder / "cmdline").read_bytes()
        except OSError:
            continue
        if mark not in words or state in "ZX":
            continue
        is_rank = any(word.startswith((b"PMI_RANK=", b"OMPI_COMM_WORLD_RANK=")) for word in words)
        starter = not is_rank and (b"/mpiexec" in command or b"/mpirun" in command)
        is_rank &= b"keeper.py" not in command
        kind = "proxy" if b"hydra_pmi_proxy" in command else "rank" if is_rank else "starter" if starter else "other"
        found[kind].append(int(folder.name))
    return found


def all_processes() -> list[int]:
    return [pid for pids in processes().values() for pid in pids]


def send(pid: int, number: int) -> bool:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True


def end_on_signals() -> None:
    """SIGTERM and SIGHUP end this script by way of its `finally`."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: sys.exit(128 + number))


def end_all() -> None:
    """SIGKILL for everything of this script's jobs."""
    while pids := all_processes():
        for pid in pids:
            send(pid, signal.SIGKILL)
        time.sleep(0.05)


def resident_bytes(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")
    except (OSError, IndexError):
        return 0


def results(run: Path) -> tuple[list, bytes]:
    """Losses of all epochs, and the last weights."""
    from distgnn.train.checkpoint.files import find_checkpoints

    records = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    losses = [(record["epoch"], record["loss"]) for record in records]
    return losses, (find_checkpoints(run)[0] / "model.safetensors").read_bytes()


def what_is_left(seconds: float = 10.0) -> list[str]:
    """Processes and shared memory segments that are still there after so many seconds; told once: they are removed."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and (all_processes() or _segments()):
        time.sleep(0.1)
    segments = _segments()
    left = [f"process {pid} ({_name(pid)})" for pid in all_processes()] + segments
    end_all()
    for segment in segments:
        Path(segment).unlink(missing_ok=True)
    return left


def _segments() -> list[str]:
    return [str(path) for path in SHARED_MEMORY.glob("mpich_shm_*")] if os.environ.get(OWN_SHARED_MEMORY) else []


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")[-80:].strip()
    except OSError:
        return "?"


OWN_SHARED_MEMORY = "DISTGNN_OWN_SHM"


def with_own_shared_memory() -> None:
    """Begin again with a /dev/shm that nobody else uses, where this process may: what is left there is ours."""
    if os.environ.get(OWN_SHARED_MEMORY) or os.geteuid() != 0:
        return
    script = f'mount -t tmpfs -o size=2g shm {SHARED_MEMORY} && export {OWN_SHARED_MEMORY}=1 && exec "$@"'
    os.execvp("unshare", ["unshare", "--mount", "sh", "-c", script, "sh", sys.executable, *sys.argv])
