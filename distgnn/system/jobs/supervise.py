"""One job of ranks: started, watched, told of signals, and ended with everything it started.

```
launcher                     supervise()
  ├─ clean-up process        ends the job when the launcher is killed (processes.py)
  └─ mpiexec                 the kernel kills it with the launcher
       └─ proxy, one per machine
            └─ keeper        the kernel kills it with the proxy (keeper.py)
                 └─ rank     the kernel kills it with its keeper, which names one that dies
```
Every process of the job carries DISTGNN_JOB, so that none is missed, whoever is its parent by then.
"""

import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from distgnn.errors import RunError
from distgnn.system.jobs import keeper, processes
from distgnn.system.jobs.processes import HOST, children, first_act_of_starter, memory_kills, say, why_killed
from distgnn.system.output import Relay, in_notebook

LOOK_SECONDS = 1.0
SAME_SECONDS = 2.0  # signals that come within it are one request: some senders reach every process of a job
STOP_SECONDS = 5.0
LOST_LOOKS = 20  # after proxies have ended: the others' machines cannot be reached, or their ranks hang
SAID = 32  # is added to the exit code 128 + n of ranks that a signal has stopped and that have said so
LOST = 255  # exit code, as mpiexec's own when a machine dies
# How Hydra begins to say that a rank did not end well: which, and why, says keeper.py.
BANNER = b"=" * 83 + b"\n=   BAD TERMINATION"


def ended_with_parent(program: list[str]) -> list[str]:
    """The command of a rank that ends with the process that started it."""
    return [sys.executable, "-I", "-S", keeper.__file__, *program]


def supervise(command: list[str], environment: dict[str, str], **how: Any) -> int:
    """Wait for `command` and return its exit code; on a signal or an error stop it with everything it started.

    Args: how: the fields of `Job`.

    Notes: Python takes signals in its main thread only: from another one the job goes on until it ends.
    """
    return Job(command, environment, **how).run()


@dataclass
class Job:
    """A command, what it started, and the signals that came meanwhile.

    Args:
        graceful: the first signal is passed on to the ranks as SIGUSR1; one that comes SAME_SECONDS later ends them.
        proxies: `command` has children as long as ranks run (Hydra's proxies): without any the job is lost.
        machines: number of children, all of whose ranks end together: where some have ended for a while, the others'
            machines cannot be told.
        received: is filled with the signals that came.
        temporary: a folder of the caller's, which is removed where the caller is killed.
    """

    command: list[str]
    environment: dict[str, str]
    graceful: bool = False
    proxies: bool = False
    machines: int = 1
    received: list[int] = field(default_factory=list)
    temporary: Path | None = None
    name: str = field(default_factory=lambda: os.urandom(16).hex())  # DISTGNN_JOB
    process: subprocess.Popen | None = None
    relay: Relay | None = None
    cleanup: subprocess.Popen | None = None
    fewer: int = 0  # looks in a row with fewer children than machines
    most: int = 0  # children at a time
    asked: float = 0.0  # when the last signal came
    began: float = field(default_factory=time.time)
    kills: tuple[int, int] = field(default_factory=memory_kills)

    def run(self) -> int:
        """Until the command ends, or a signal asks for it. Raises: SystemExit where a program's ranks have said so."""
        handled: tuple[int, ...] = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, *([signal.SIGUSR1] * self.graceful))
        if threading.current_thread() is not threading.main_thread():
            handled = ()
        self.environment = self.environment | {"DISTGNN_LAUNCHED": "1", processes.VARIABLE: self.name}
        previous = {number: signal.signal(number, self._remember) for number in handled}
        try:
            self._start()
            if self.received:
                raise _Stopped
            code = self._wait()
            if code < 0 and not self.received:
                name = signal.Signals(-code).name
                reason = why_killed(-code, self.kills)
                say(f"what started the ranks on host {HOST} was killed by {name}{reason}", self.environment)
            if code - SAID - 128 in (signal.SIGINT, signal.SIGUSR1, signal.SIGTERM):
                code -= SAID
                if self.temporary is None:
                    sys.exit(128 + self.received[0] if self.received else code)
            return 128 + self.received[0] if self.received else code if code >= 0 else 128 - code
        except OSError as error:
            raise RunError(f"{self.command[0]} could not be started: {error}") from error
        except _Stopped:
            return 128 + self.received[0]
        finally:
            for number in handled:
                signal.signal(number, signal.SIG_IGN)
            self._end()
            for number, handler in previous.items():
                signal.signal(number, handler)

    def _remember(self, number: Any, _frame: Any) -> None:
        if self.graceful and self.received and time.monotonic() - self.asked < SAME_SECONDS:
            return
        self.received.append(number)
        self.asked = time.monotonic()
        if self.process is None:  # it is being started, where hooks of a fork would swallow an exception
            return
        if not self.graceful or len(self.received) > 1:
            raise _Stopped
        self.process.send_signal(signal.SIGUSR1)

    def _start(self) -> None:
        told = self.name, str(self.temporary or ""), str(self.began)
        self.cleanup = subprocess.Popen(
            [sys.executable, "-I", "-S", processes.__file__, *told],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,
        )
        reader, writer = (None, None) if os.isatty(1) and not self.proxies else os.pipe()
        try:
            with warnings.catch_warnings():  # of a fork beside threads: only prctl runs in it
                warnings.simplefilter("ignore", DeprecationWarning)
                self.process = subprocess.Popen(
                    self.command,
                    env=self.environment,
                    stdin=subprocess.DEVNULL,
                    stdout=writer,
                    stderr=subprocess.STDOUT if in_notebook() else None,
                    start_new_session=True,
                    preexec_fn=first_act_of_starter(self.machines == 1),
                )
        finally:
            if writer is not None:
                os.close(writer)
        self.relay = None if reader is None else Relay(reader, 1, BANNER)

    def _wait(self) -> int:
        assert self.process is not None
        while True:
            try:
                return self.process.wait(LOOK_SECONDS)
            except subprocess.TimeoutExpired:
                if self.received:  # what comes before all ranks are there, mpiexec passes on to none
                    self.process.send_signal(signal.SIGUSR1)
                text = self._lost() if self.proxies else None
                if text is not None:
                    say(text, self.environment)
                    self.process.kill()
                    return LOST

    def _lost(self) -> str | None:
        """What to say where mpiexec waits for ranks that are gone."""
        assert self.process is not None
        running = sum(map(processes.runs, children(self.process.pid)))
        self.most = max(self.most, running)
        self.fewer = self.fewer + 1 if running < self.machines <= self.most else 0
        if self.fewer < LOST_LOOKS:
            return None
        if not running:
            return "mpiexec has lost its proxy, and with it all ranks (was it killed, or out of memory?)"
        gone = self.machines - running
        return f"ranks have ended on {gone} of {self.machines} machines, and nothing is heard of the others"

    def _end(self) -> None:
        """End what is left, whoever its parent is. Where it ended well, MPI has removed its shared memory."""
        over = self.process is not None and self.process.poll() is not None
        processes.end_job(self.name, 0.0 if over else STOP_SECONDS)
        if self.process is not None and self.process.wait() != 0:
            processes.remove_strays(self.began)
        if self.relay is not None:
            self.relay.finish(STOP_SECONDS)
        if self.cleanup is not None:
            self.cleanup.communicate(b"done\n")


class _Stopped(BaseException):
    """A signal asked the launcher to end the run."""
