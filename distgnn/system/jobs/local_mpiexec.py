"""`mpiexec` for ranks of this machine and MPICH: no proxy between, and no port that listens.

    python -I -S local_mpiexec.py -n RANKS PROGRAM ARGUMENTS …

MPICH's own `mpiexec` listens on all interfaces, whoever connects, and its proxy may die while its ranks go on. Here
ranks are children, and each has a pair of sockets for what MPICH asks of the program that started it (PMI version 1:
lines of `cmd=NAME key=value …`, which bring ranks together once, in MPI_Init).

A rank that is killed, or ends without MPI_Finalize, ends the others at once. Signals are passed on to all ranks. The
exit code is that of the first rank that failed, 128 + n for a signal.

Nothing of ours is imported: a start takes some 20 ms.
"""

import os
import select
import signal
import socket
import sys
import time

PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
GRACE_SECONDS = 5.0  # for the others, when a rank fails before MPI_Init: they may be about to say the same


class Rank:
    """One rank: its process, its socket, and how far it is."""

    def __init__(self, number: int, size: int, program: list[str]):
        self.socket, theirs = socket.socketpair()
        self.received = b""
        self.begun = self.finalized = False
        self.code: int | None = None
        number_here = {"MPI_LOCALRANKID": str(number), "MPI_LOCALNRANKS": str(size)}
        variables = {"PMI_FD": str(theirs.fileno()), "PMI_RANK": str(number), "PMI_SIZE": str(size)} | number_here
        theirs.set_inheritable(True)
        self.pid = os.fork()
        if self.pid == 0:
            try:
                os.execvpe(program[0], program, os.environ | variables)
            except OSError as error:
                os.write(2, f"distgnn: error: {program[0]} could not be started: {error.strerror}\n".encode())
            finally:
                os._exit(127)
        theirs.close()

    def lines(self) -> list[dict[str, str]]:
        """What the rank asked since the last call; its socket is closed when it is gone."""
        try:
            chunk = self.socket.recv(1 << 16)
        except OSError:
            chunk = b""
        if not chunk:
            self.socket.close()
        *whole, self.received = (self.received + chunk).split(b"\n")
        return [dict(word.split("=", 1) for word in line.decode().split() if "=" in word) for line in whole]

    def answer(self, text: str) -> None:
        """Send a line."""
        try:
            self.socket.sendall(f"{text}\n".encode())
        except OSError:
            pass  # it is gone: its end is noticed


class Job:
    """All ranks, and what they told each other."""

    def __init__(self, size: int, program: list[str]):
        self.name = f"distgnn_{os.getpid()}_{os.urandom(8).hex()}"  # MPICH names the job's shared memory after it
        self.values = {"PMI_process_mapping": f"(vector,(0,1,{size}))"}
        self.waiting: dict[str, list[Rank]] = {}
        self.failed: int | None = None
        self.kill_at = float("inf")
        self.ranks = [Rank(number, size, program) for number in range(size)]

    def serve(self, woken: socket.socket) -> int:
        """Until all ranks have ended; the exit code."""
        while any(rank.code is None for rank in self.ranks):
            open_ones = {rank.socket.fileno(): rank for rank in self.ranks if rank.socket.fileno() >= 0}
            timeout = None if self.kill_at == float("inf") else max(self.kill_at - time.monotonic(), 0.02)
            for descriptor in select.select([*open_ones, woken.fileno()], [], [], timeout)[0]:
                if descriptor == woken.fileno():
                    woken.recv(4096)
                    continue
                rank = open_ones[descriptor]
                for asked in rank.lines():
                    self._answer(rank, asked)
            self._collect()
            if time.monotonic() >= self.kill_at:
                self.send(signal.SIGKILL)
        return self.failed or 0

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
        elif command == "put":
            self.values[asked["key"]] = asked["value"]
            rank.answer("cmd=put_result rc=0 msg=success")
        elif command == "get":
            value = self.values.get(asked["key"])
            found = f"rc=0 msg=success value={value}" if value is not None else "rc=-1 msg=key_not_found value=unknown"
            rank.answer(f"cmd=get_result {found}")
        elif command == "barrier_in":
            self._wait_for_others(rank, asked.get("group", "WORLD"))
        elif command == "finalize":
            rank.finalized = True
            rank.answer("cmd=finalize_ack rc=0")
        elif command == "abort":
            self._fail(int(asked.get("exitcode", "1")) & 255 or 1, 0.0)
        else:
            rank.answer(
                ANSWERS.get(command, f"cmd={command}_result rc=-1 msg=unknown").format(
                    size=len(self.ranks), name=self.name
                )
            )

    def _wait_for_others(self, rank: Rank, group: str) -> None:
        numbers = group.replace(",", "")
        members = len(group.split(",")) if numbers.isdigit() else len(self.ranks)  # WORLD and NODE are all of them
        waiting = self.waiting.setdefault(group, [])
        waiting.append(rank)
        if len(waiting) == members:
            for one in self.waiting.pop(group):
                one.answer("cmd=barrier_out rc=0")

    def _collect(self) -> None:
        """Note which ranks have ended, and how."""
        for rank in self.ranks:
            if rank.code is None:
                pid, status = os.waitpid(rank.pid, os.WNOHANG)
                if pid:
                    code = os.waitstatus_to_exitcode(status)
                    rank.code = 128 - code if code < 0 else code
                    self._judge(rank, killed=code < 0)

    def _judge(self, rank: Rank, killed: bool) -> None:
        if killed or (rank.begun and not rank.finalized):
            self._fail(rank.code or 1, 0.0)
        elif rank.code and not rank.begun:
            self._fail(rank.code, GRACE_SECONDS)
        elif rank.code:
            self.failed = self.failed or rank.code

    def _fail(self, code: int, grace: float) -> None:
        self.failed = self.failed or code
        self.kill_at = min(self.kill_at, time.monotonic() + grace)


ANSWERS = {
    "get_maxes": "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024 rc=0",
    "get_appnum": "cmd=appnum appnum=0 rc=0",
    "get_my_kvsname": "cmd=my_kvsname kvsname={name} rc=0",
    "get_universe_size": "cmd=universe_size size={size} rc=0",
}


def main() -> int:
    """Start the ranks and wait for them."""
    size, program = int(sys.argv[2]), sys.argv[3:]
    woken, waker = socket.socketpair()
    waker.setblocking(False)
    signal.set_wakeup_fd(waker.fileno(), warn_on_full_buffer=False)
    came: list[int] = []
    for handled in (*PASSED_ON, signal.SIGCHLD):
        signal.signal(handled, lambda number, _: came.append(number))
    job = Job(size, program)
    for handled in PASSED_ON:
        signal.signal(handled, lambda number, _: job.send(number))
    for number in set(came) - {signal.SIGCHLD}:
        job.send(number)
    return job.serve(woken)


if __name__ == "__main__":
    sys.exit(main())
