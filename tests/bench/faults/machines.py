"""Machines on one machine: network namespaces with a link each to a switch, and faults that can be put into them.

    10.78.0.1         10.78.0.2        …     one network namespace each, with a device eth0 and a host name (host-1 …)
      eth0              eth0
       │                 │
    port 1            port 2           …     in the switch's own namespace, on a bridge

MPICH would talk through shared memory between processes of one kernel: MPIR_CVAR_NOLOCAL sends everything over the
links as TCP. A machine that is `away` starts nothing: whoever would log in to it
waits. Needs root and iproute2; the machine's own network is not touched, and all is removed at the end.
"""

import json
import os
import signal
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path

PREFIX = f"distgnn{os.getpid()}"
ENTER = """#!/bin/sh
# called as ssh would be: options, host, command
while [ "${1#-}" != "$1" ]; do shift; done
host=$1; shift
[ -e FOLDER/away-$host ] && exec sleep 600
exec ip netns exec PREFIX-${host##*.} unshare --uts sh -c "hostname host-${host##*.}; $*"
"""


class Machines:
    """The machines, by number from 1."""

    def __init__(self, folder: Path, count: int):
        self.folder, self.numbers = folder, range(1, count + 1)
        self.switch = f"{PREFIX}-switch"

    def address(self, number: int) -> str:
        return f"10.78.0.{number}"

    def namespace(self, number: int) -> str:
        return f"{PREFIX}-{number}"

    def write_hosts(self, file: Path, numbers: list[int]) -> None:
        file.write_text("".join(f"{self.address(number)}\n" for number in numbers))

    def make(self) -> None:
        ip("netns", "add", self.switch)
        ip("-n", self.switch, "link", "add", "bridge", "type", "bridge")
        ip("-n", self.switch, "link", "set", "bridge", "up")
        for number in self.numbers:
            host, port = self.namespace(number), f"port{number}"
            ip("netns", "add", host)
            ip("-n", self.switch, "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", host)
            ip("-n", self.switch, "link", "set", port, "master", "bridge", "up")
            ip("-n", host, "addr", "add", f"{self.address(number)}/24", "dev", "eth0")
            for device in ("lo", "eth0"):
                ip("-n", host, "link", "set", device, "up")
        script = self.folder / "enter"
        script.write_text(ENTER.replace("PREFIX", PREFIX).replace("FOLDER", str(self.folder.resolve())))
        script.chmod(0o755)

    def remove(self) -> None:
        for number in self.numbers:
            self.away(number, False)
            for pid in self.pids(number):
                os.kill(pid, signal.SIGKILL)
            subprocess.run(["ip", "netns", "del", self.namespace(number)], check=False)
        subprocess.run(["ip", "netns", "del", self.switch], check=False)

    def before(self) -> tuple[str, ...]:
        """Words that start a program on the first machine."""
        return ("ip", "netns", "exec", self.namespace(1))

    def variables(self) -> dict[str, str]:
        """What MPICH must find in the environment."""
        return {
            "HYDRA_LAUNCHER": "ssh",
            "HYDRA_LAUNCHER_EXEC": str(self.folder / "enter"),
            "HYDRA_IFACE": "eth0",
            "MPICH_CH4_NETMOD": "ofi",
            "MPIR_CVAR_NOLOCAL": "1",
            "FI_PROVIDER": "tcp",
            "FI_TCP_IFACE": "eth0",
        }

    def pids(self, number: int) -> list[int]:
        command = ["ip", "netns", "pids", self.namespace(number)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return [int(word) for word in done.stdout.split()]

    def sent_bytes(self, number: int) -> int:
        command = ["ip", "-n", self.namespace(number), "-s", "-j", "link", "show", "eth0"]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return json.loads(done.stdout)[0]["stats64"]["tx"]["bytes"]

    # --- faults ----------------------------------------------------------------------------------------------

    def away(self, number: int, away: bool = True) -> None:
        """Nobody can log in."""
        file = self.folder / f"away-{self.address(number)}"
        file.touch() if away else file.unlink(missing_ok=True)

    def link(self, number: int, up: bool) -> None:
        """The cable is pulled, or put back."""
        ip("-n", self.switch, "link", "set", f"port{number}", "up" if up else "down")

    def mute(self, number: int, mute: bool = True) -> None:
        """What the machine sends is lost; it still receives. (A bucket that is smaller than any packet.)"""
        self._limit(number, ("rate", "8bit", "burst", "1", "limit", "1") if mute else None)

    def slow(self, number: int, rate: str | None) -> None:
        """What the machine sends leaves at this rate, as tc writes it."""
        self._limit(number, None if rate is None else ("rate", rate, "burst", "10000", "limit", "1000000"))

    def _limit(self, number: int, bucket: tuple[str, ...] | None) -> None:
        where = ["tc", "-n", self.namespace(number), "qdisc"]
        if bucket is None:
            subprocess.run([*where, "del", "dev", "eth0", "root"], check=False, capture_output=True)
        else:
            subprocess.run([*where, "replace", "dev", "eth0", "root", "tbf", *bucket], check=True)

    def signal(self, number: int, what: int) -> None:
        """A signal to all processes of a machine."""
        for pid in self.pids(number):
            os.kill(pid, what)


@contextmanager
def machines(folder: Path, count: int):
    """Make the machines; they are removed at the end."""
    made = Machines(folder, count)
    try:
        made.make()
        yield made
    finally:
        made.remove()


def ip(*words) -> None:
    subprocess.run(["ip", *map(str, words)], check=True)


def wait_for(what, seconds: float = 300) -> None:
    """Until `what()` is true."""
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline, "it did not come"
        time.sleep(0.05)
