"""Hosts on one machine: network namespaces with a link each to a switch, MPI between them, and faults put into them.

    10.77.0.1         10.77.0.2        …     one network namespace each, with a device eth0 and a host name (host-1 …)
      eth0              eth0
       │                 │
    port 1            port 2           …     in the switch's own namespace, on a bridge

MPICH would talk through shared memory between processes of one kernel: its TCP provider is asked for, and
MPIR_CVAR_NOLOCAL sends everything over the links. A host that is `away` starts nothing: whoever would log in to it
waits. Needs root, iproute2 and the MPICH of `distgnn[mpich]`. The machine's own network is not touched; everything is
removed at the end, also after an error or a signal.
"""

import os
import signal
import subprocess
from pathlib import Path

PREFIX = f"distgnn{os.getpid()}"
MTU = 9000
ENTER = """#!/bin/sh
# called as ssh would be: options, host, command
while [ "${1#-}" != "$1" ]; do shift; done
host=$1; shift
number=${host##*.}
[ -e FOLDER/away-$host ] && exec sleep 600
exec ip netns exec PREFIX-$number unshare --uts sh -c "hostname host-$number; $*"
"""


class NetworkError(RuntimeError):
    """The machine does not let us make hosts; the text says what is missing."""


class Hosts:
    """The hosts, by number from 1; folder: where the script lies that logs in."""

    def __init__(self, folder: Path, count: int):
        self.folder, self.numbers = folder.resolve(), range(1, count + 1)
        self.switch, self.enter = f"{PREFIX}-switch", self.folder / "enter"
        script = ENTER.replace("PREFIX", PREFIX).replace("FOLDER", str(self.folder))
        self.enter.write_text(script)
        self.enter.chmod(0o755)

    def address(self, number: int) -> str:
        return f"10.77.0.{number}"

    def namespace(self, number: int) -> str:
        return f"{PREFIX}-{number}"

    def make(self) -> None:
        command("ip", "netns", "add", self.switch)
        command("ip", "-n", self.switch, "link", "add", "bridge", "mtu", MTU, "type", "bridge")
        command("ip", "-n", self.switch, "link", "set", "bridge", "up")
        for number in self.numbers:
            host, port = self.namespace(number), f"port{number}"
            command("ip", "netns", "add", host)
            ends = (port, "mtu", MTU, "type", "veth", "peer", "name", "eth0", "netns", host)
            command("ip", "-n", self.switch, "link", "add", *ends)
            command("ip", "-n", self.switch, "link", "set", port, "master", "bridge", "up")
            command("ip", "-n", host, "addr", "add", f"{self.address(number)}/24", "dev", "eth0")
            command("ip", "-n", host, "link", "set", "eth0", "mtu", MTU, "up")
            command("ip", "-n", host, "link", "set", "lo", "up")

    def remove(self) -> None:
        """Deleting a namespace deletes its devices and their other ends."""
        for number in self.numbers:
            self.away(number, False)
            self.signal(number, signal.SIGKILL)
            subprocess.run(["ip", "netns", "del", self.namespace(number)], capture_output=True, check=False)
        subprocess.run(["ip", "netns", "del", self.switch], capture_output=True, check=False)

    def before(self) -> tuple[str, ...]:
        """Words that start a program on the first host."""
        return ("ip", "netns", "exec", self.namespace(1))

    def variables(self) -> dict[str, str]:
        """What MPICH must find in the environment."""
        return {
            "HYDRA_LAUNCHER": "ssh",
            "HYDRA_LAUNCHER_EXEC": str(self.enter),
            "HYDRA_IFACE": "eth0",
            "MPICH_CH4_NETMOD": "ofi",
            "MPIR_CVAR_NOLOCAL": "1",
            "FI_PROVIDER": "tcp",
            "FI_TCP_IFACE": "eth0",
        }

    def pids(self, number: int) -> list[int]:
        words = ["ip", "netns", "pids", self.namespace(number)]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        return [int(word) for word in done.stdout.split()]

    # --- faults ----------------------------------------------------------------------------------------------

    def away(self, number: int, away: bool = True) -> None:
        """Nobody can log in."""
        file = self.folder / f"away-{self.address(number)}"
        file.touch() if away else file.unlink(missing_ok=True)

    def link(self, number: int, up: bool) -> None:
        """The cable is pulled, or put back."""
        command("ip", "-n", self.switch, "link", "set", f"port{number}", "up" if up else "down")

    def mute(self, number: int) -> None:
        """What the host sends is lost; it still receives. (A bucket that is smaller than any packet.)"""
        limit(self.namespace(number), "eth0", "rate", "8bit", "burst", 1, "limit", 1)

    def slow(self, number: int, rate: str | None) -> None:
        """What the host sends leaves at this rate; None: as fast as it can."""
        if rate is not None:
            limit(self.namespace(number), "eth0", "rate", rate, "burst", 10000, "limit", 1000000)
            return
        words = ["tc", "-n", self.namespace(number), "qdisc", "del", "dev", "eth0", "root"]
        subprocess.run(words, check=False, capture_output=True)

    def signal(self, number: int, what: int) -> None:
        """A signal to all processes of a host."""
        for pid in self.pids(number):
            os.kill(pid, what)


def limit(namespace: str, device: str, *words) -> None:
    """Let a device send no faster than a bucket of tokens allows."""
    command("tc", "-n", namespace, "qdisc", "replace", "dev", device, "root", "tbf", *words)


def command(*words) -> None:
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True, check=False)
    if done.returncode:
        raise NetworkError(f"{' '.join(map(str, words))}: {done.stderr.strip()}")
