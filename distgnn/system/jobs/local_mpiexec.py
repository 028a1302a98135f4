"""`mpiexec` for ranks of this machine and MPICH: no proxy between, and no port that listens.

    python -I -S local_mpiexec.py -n RANKS PROGRAM ARGUMENTS …

Why not MPICH's own `mpiexec`, bound to loopback: its proxy may die while its ranks go on, a port listens for whoever
connects, and it names neither a rank that is killed nor one that leaves without MPI_Finalize, or before MPI_Init. It
starts ranks of several machines, and of an MPI that is not the one beside this Python.

Here ranks are children. Each has a pair of sockets for what MPICH asks of the program that started it (PMI version 1:
lines of `cmd=NAME key=value …`, which bring ranks together once, in MPI_Init), and a page of memory for what it does
(`distgnn/system/jobs/rank_log.py`).

A rank that is killed, or ends without MPI_Finalize, ends the others at once, and one line names it. Signals are passed
on to all ranks. The exit code is the first failed rank's, 128 + n for a signal.

Nothing of ours is imported: a start takes some 20 ms.
"""

import os
import select
import signal
import socket
import sys
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
GRACE_SECONDS = 5.0  # for the others, when a rank fails before MPI_Init: they may be about to say the same
DEATH_SECONDS = 0.2  # a rank that says it cannot reach another may do so before the other's death is told
LONGEST_LINE = 1 << 16  # bytes; MPICH's longest is 1 kB
NOTE_BYTES = 1024
NOTE_VARIABLE = "DISTGNN_NOTE_FD"
OWN_CODE = 1  # of a job whose first rank to leave had no exit code of its own
JOINED, ENDS = "joined", "ends"  # the stage of a rank, in its note
SPOKEN = "left"  # how the note of a rank begins that has said itself that it leaves


def readable(descriptors: Iterable[int], timeout: float | None = None) -> list[int]:
    """Those that can be read within some seconds, however large their numbers: `select.select` stops at 1,024."""
    poll = select.poll()
    for descriptor in descriptors:
        poll.register(descriptor, select.POLLIN)
    return [descriptor for descriptor, _ in poll.poll(None if timeout is None else 1000 * timeout)]


class Rank:
    """One rank: its process, its socket, and how far it is."""

    def __init__(self, number: int, size: int, program: list[str]):
        self.number = number
        ours, theirs = socket.socketpair()
        self.socket: socket.socket = ours
        self.received = b""
        self.begun = self.finalized = False
        self.code: int | None = None
        number_here = {"MPI_LOCALRANKID": str(number), "MPI_LOCALNRANKS": str(size)}
        variables = {"PMI_FD": str(theirs.fileno()), "PMI_RANK": str(number), "PMI_SIZE": str(size)} | number_here
        theirs.set_inheritable(True)
        self.note_file: int = os.memfd_create("distgnn-note") if hasattr(os, "memfd_create") else -1
        if self.note_file >= 0:
            os.ftruncate(self.note_file, NOTE_BYTES)
            variables[NOTE_VARIABLE] = str(self.note_file)
        self.pid: int = os.fork()
        if self.pid == 0:
            try:
                signal.signal(signal.SIGINT, signal.SIG_IGN)  # the launcher has it too, and ends ranks otherwise
                if self.note_file >= 0:
                    os.set_inheritable(self.note_file, True)
                os.execvpe(program[0], program, os.environ | variables)
            except OSError as error:
                os.write(2, f"distgnn: error: {program[0]} could not be started: {error.strerror}\n".encode())
            finally:
                os._exit(127)
        theirs.close()

    def lines(self) -> list[dict[str, str]]:
        """What the rank asked since the last call; its socket is closed when it is gone, or sends no lines."""
        try:
            chunk = self.socket.recv(1 << 16)
        except OSError:
            chunk = b""
        if not chunk or len(self.received) > LONGEST_LINE:
            self.socket.close()
        *whole, self.received = (self.received + chunk).split(b"\n")
        texts = [line.decode(errors="replace") for line in whole]
        return [dict(word.split("=", 1) for word in text.split() if "=" in word) for text in texts]

    def answer(self, text: str) -> None:
        try:
            self.socket.sendall(f"{text}\n".encode())
        except OSError:
            pass  # it is gone: its end is noticed

    def note(self) -> list[str]:
        """What the rank does, and the path of its log: as far as it has said so, at least two texts."""
        return words_of(self.note_file)[1:]

    def place(self) -> str:
        """Where it was, as it is said after "in"."""
        return self.note()[0] or ("its start" if self.begun else "its start, before MPI")


class Job:
    """All ranks, and what they told each other."""

    def __init__(self, size: int, program: list[str]):
        self.name: str = f"distgnn_{os.getpid()}_{os.urandom(8).hex()}"  # MPICH names the job's shared memory after it
        self.values: dict[str, str] = {"PMI_process_mapping": f"(vector,(0,1,{size}))"}
        self.waiting: dict[str, list[Rank]] = {}
        self.failed: int | None = None
        self.kill_at = float("inf")
        self.passed: set[int] = set()  # signals that came from outside
        self.kills: tuple[int, int] = memory_kills()
        self.early: Rank | None = None  # ended with 0 before it started MPI, and others have
        self.ranks: list[Rank] = [Rank(number, size, program) for number in range(size)]

    def serve(self, woken: socket.socket) -> int:
        """Until all ranks have ended; the exit code."""
        while any(rank.code is None for rank in self.ranks):
            open_ones = {rank.socket.fileno(): rank for rank in self.ranks if rank.socket.fileno() >= 0}
            timeout = None if self.kill_at == float("inf") else max(self.kill_at - time.monotonic(), 0.02)
            for descriptor in readable([*open_ones, woken.fileno()], timeout):
                if descriptor == woken.fileno():
                    woken.recv(4096)
                    continue
                rank = open_ones[descriptor]
                for asked in rank.lines():
                    self._answer(rank, asked)
            self._collect()
            if time.monotonic() >= self.kill_at:
                if self.early is not None and self.early.number >= 0:
                    say(f"rank {self.early.number} left before it started MPI, the others wait for it in MPI_Init")
                    self.early.number = -1  # once
                self.send(signal.SIGKILL)
        return self.failed or 0

    def pass_on(self, number: int) -> None:
        """A signal that came from outside, to every rank."""
        self.passed.add(number)
        self.send(number)

    def send(self, number: int) -> None:
        """A signal to every rank that runs."""
        for rank in self.ranks:
            if rank.code is None:
                os.kill(rank.pid, number)

    def _answer(self, rank: Rank, asked: dict[str, str]) -> None:
        command = asked.get("cmd", "")
        if command == "init":
            rank.begun = True
            rank.answer("cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0")
        elif command == "put" and {"key", "value"} <= asked.keys():
            self.values[asked["key"]] = asked["value"]
            rank.answer("cmd=put_result rc=0 msg=success")
        elif command == "get" and "key" in asked:
            value = self.values.get(asked["key"])
            found = f"rc=0 msg=success value={value}" if value is not None else "rc=-1 msg=key_not_found value=unknown"
            rank.answer(f"cmd=get_result {found}")
        elif command == "barrier_in":
            group = asked.get("group", "WORLD")
            numbered = group.replace(",", "").isdigit()  # WORLD and NODE are all of them
            waiting = self.waiting.setdefault(group, [])
            waiting.append(rank)
            if len(waiting) == (len(group.split(",")) if numbered else len(self.ranks)):
                for one in self.waiting.pop(group):
                    one.answer("cmd=barrier_out rc=0")
        elif command == "finalize":
            rank.finalized = True
            rank.answer("cmd=finalize_ack rc=0")
        elif command == "abort":
            code, deadline = asked.get("exitcode", ""), time.monotonic() + DEATH_SECONDS
            while self.failed is None and time.monotonic() < deadline:  # others complain of a rank that was killed
                self._collect()
                time.sleep(0.01)
            self._fail((int(code) & 255 if code.isascii() and code.isdigit() else 0) or OWN_CODE, 0.0)
        elif command:
            answer = ANSWERS.get(command, f"cmd={command}_result rc=-1 msg=unknown")
            rank.answer(answer.replace("{size}", str(len(self.ranks))).replace("{name}", self.name))

    def _collect(self) -> None:
        """Note which ranks have ended, and how."""
        ended = []
        for rank in self.ranks:
            if rank.code is None:
                pid, status = os.waitpid(rank.pid, os.WNOHANG)
                if pid:
                    code = os.waitstatus_to_exitcode(status)
                    rank.code = 128 - code if code < 0 else code
                    ended.append((code, rank))
        early = next((rank for rank in self.ranks if rank.code == 0 and not rank.begun), None)
        if early is not None and self.early is None and any(one.begun and one.code is None for one in self.ranks):
            self.early = early
            self._fail(OWN_CODE, GRACE_SECONDS)
        for code, rank in sorted(ended, key=lambda one: one[0]):  # killed ones first: others may have failed for them
            silent = self.failed is not None
            if code < 0:
                if -code in PASSED_ON and not silent:  # it may have been sent to every process of the job
                    time.sleep(DEATH_SECONDS)
                if not silent and -code not in self.passed:
                    phase, log = rank.note()[:2]
                    who = f"rank {rank.number} on host {HOST}"
                    say(death_line(who, -code, phase or rank.place(), log, self.kills))
                self._fail(rank.code or OWN_CODE, 0.0)
            elif rank.begun and not rank.finalized:
                if not silent and not rank.note()[0].startswith(SPOKEN):
                    how = f"ended with exit code {code} and without MPI_Finalize"
                    places = [one.place() for one in self.ranks if one is not rank and one.code is None]
                    others = f"; the others are in {places[0]}" if places else ""
                    say(f"rank {rank.number} on host {HOST} {how}: it left in {rank.place()}{others}")
                self._fail(code or OWN_CODE, 0.0)
            elif not rank.begun and code:
                self._fail(code, GRACE_SECONDS)
            elif code:
                self.failed = self.failed or code

    def _fail(self, code: int, grace: float) -> None:
        self.failed = self.failed or code
        self.kill_at = min(self.kill_at, time.monotonic() + grace)


def words_of(note_file: int) -> list[str]:
    """From a rank's page of memory its stage, what it does, and the path of its log: at least three texts."""
    text = b""
    with suppress(OSError):
        text = os.pread(note_file, NOTE_BYTES, 0)
    words = text.split(b"\0")[0].decode(errors="replace")
    return [*("".join(filter(str.isprintable, line)).rstrip(",") for line in words.split("\n")), "", "", ""]


def death_line(who: str, number: int, phase: str, log: str, before: tuple[int, int]) -> str:
    """The line on a rank that a signal has ended. Args: before: `memory_kills()` when it began."""
    name = signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"
    where = f"; its log is {log}" if log else ""
    return f"{who} was killed by {name} in {phase}{why_killed(number, before)}{where}"


HOST = socket.gethostname()
MEANINGS: dict[int, str] = {
    signal.SIGSEGV: ": it read or wrote memory that is not its own (a fault of a compiled library, or of this program)",
    signal.SIGBUS: ": memory behind a mapped file is gone (a full /dev/shm or disk, a file that was cut meanwhile)",
    signal.SIGABRT: ": a library gave up, and may have said why above (no memory, a failed check)",
    signal.SIGALRM: ": MPI did not start within the limit (--timeout, a minute at least)",
}
PROC_GROUPS, GROUPS = "/proc/self/cgroup", "/sys/fs/cgroup"
LESS_MEMORY = "take more parts, --dtype bfloat16, --remat or fewer --hidden-feats"


def why_killed(number: int, before: tuple[int, int]) -> str:
    """What is known of the reason for a signal. Args: before: `memory_kills()` when the job began."""
    if number != signal.SIGKILL:
        return MEANINGS.get(number, "")
    group, machine = memory_kills()
    if group > before[0]:
        limits = [text for one in control_groups() if (text := _limit(one))]
        limit = f" (control group: {min(limits, key=int)} bytes at most)" if limits else ""
        return f": the kernel ended it for memory{limit}: {LESS_MEMORY}, or give it more"
    if machine > before[1]:
        return f": the kernel ended processes of this machine for memory: {LESS_MEMORY}"
    return ": not by the kernel for memory; another process sent it (a batch system at a limit, kill -9)"


def memory_kills() -> tuple[int, int]:
    """How many processes the kernel has ended for memory: of this process's control group, of the machine."""
    own = [_oom_kill(one / name) for one in control_groups()[:1] for name in ("memory.events", "memory.oom_control")]
    return max(own, default=0), _oom_kill(Path("/proc/vmstat"))


def control_groups(controller: str = "memory", proc: str = PROC_GROUPS, mounts: str = GROUPS) -> list[Path]:
    """Folders of this process's control groups for memory or "cpu", and of those around them (versions 1 and 2).

    Args: proc: the process's groups; mounts: where groups are. A container may see its own group as the root.
    """
    found: list[Path] = []
    with suppress(OSError):
        lines = [line.split(":", 2) for line in Path(proc).read_text().splitlines()]
        for _, controllers, path in (line for line in lines if len(line) == 3):
            if not controllers or controller in controllers.split(","):
                backwards = ",".join(reversed(controllers.split(",")))
                for mount in (controllers, backwards, controller) if controllers else ("", "unified"):
                    root = Path(mounts) / mount
                    below = root / path.lstrip("/")
                    found += [one for one in (below, *below.parents) if one.is_relative_to(root) and one.is_dir()]
    return list(dict.fromkeys(found))


def _limit(group: Path) -> str:
    """Bytes that a control group may take; empty where there is no limit."""
    for name in ("memory.max", "memory.limit_in_bytes"):
        with suppress(OSError):
            text = (group / name).read_text().strip()
            return text if text.isdigit() and int(text) < 1 << 60 else ""
    return ""


def _oom_kill(path: Path) -> int:
    """The number after "oom_kill" in a file; 0 where there is none."""
    with suppress(OSError, ValueError):
        for line in path.read_text().splitlines():
            name, _, count = line.partition(" ")
            if name == "oom_kill":
                return int(count)
    return 0


REASON = "DISTGNN_REASON"  # a file that gets the reason too, for the exception in who called the ranks


def say(text: str, environment: Mapping[str, str] = os.environ) -> None:
    """One line on standard error, whole; also into the file that the environment of the ranks names."""
    with suppress(OSError):
        os.write(2, f"distgnn: error: {text}\n".encode(errors="backslashreplace"))
    with suppress(OSError, KeyError):
        with open(environment[REASON], "x", encoding="utf-8", errors="backslashreplace") as file:  # the first of them
            file.write(text)


ANSWERS = {
    "get_maxes": "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024 rc=0",
    "get_appnum": "cmd=appnum appnum=0 rc=0",
    "get_my_kvsname": "cmd=my_kvsname kvsname={name} rc=0",
    "get_universe_size": "cmd=universe_size size={size} rc=0",
}


def main() -> int:
    size, program = int(sys.argv[2]), sys.argv[3:]
    woken, waker = socket.socketpair()
    waker.setblocking(False)
    signal.set_wakeup_fd(waker.fileno(), warn_on_full_buffer=False)
    came: list[int] = []
    for handled in (*PASSED_ON, signal.SIGCHLD):
        signal.signal(handled, lambda number, _: came.append(number))
    job = Job(size, program)
    for handled in PASSED_ON:
        signal.signal(handled, lambda number, _: job.pass_on(number))
    for number in set(came) - {signal.SIGCHLD}:
        job.pass_on(number)
    return job.serve(woken)


if __name__ == "__main__":
    sys.exit(main())
