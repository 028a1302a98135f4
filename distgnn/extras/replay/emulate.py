"""A network emulated on this machine: network namespaces with a link each to a switch, and MPI's ranks in them.

    10.77.0.1         10.77.0.2        …     a namespace for each node, with a device eth0 and a host name (node-1 …)
      eth0              eth0                 tbf: what the node sends leaves at the network's rate; netem: its latency
       │                 │
    port 1            port 2           …     in the switch's own namespace, on a bridge; mpiexec runs there
                                             tbf: what the node receives arrives at that rate

MPICH would talk through shared memory between processes of one kernel: its TCP provider is asked for, and
MPIR_CVAR_NOLOCAL sends everything over the links. Needs root, iproute2 and MPICH. The machine's own network is not
touched. Everything is removed at the end, also after an error or a signal; what a killed process left behind, by the
next one.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from distgnn.errors import InputError
from distgnn.extras.replay.network import Network
from distgnn.system.launch import find_mpiexec, mpi_flavor

PREFIX = "distgnn"
PROGRAMS = ("ip", "tc", "unshare")
MTU = 9000
MOST_NODES = 250
LEAST_LATENCY = 1e-4  # seconds; links of a machine have some 5e-5 of their own
ENDING = (signal.SIGTERM, signal.SIGHUP)
ENTER = """#!/bin/sh
# called as ssh would be: options, host, command
while [ "${1#-}" != "$1" ]; do shift; done
host=$1; shift
number=${host##*.}
exec PIN ip netns exec NAME-$number unshare --uts sh -c "hostname node-$number; $*"
"""
MPIEXEC = """#!/bin/sh
[ "$1" = --version ] && exec REAL --version
exec ip netns exec NAME-switch REAL -localhost 10.77.0.254 "$@"
"""


@contextmanager
def emulated(network: Network, num_ranks: int) -> Iterator["Nodes"]:
    """Within, a network of nodes for `num_ranks` ranks: `call_on_ranks(…, hosts=nodes.hosts)` starts ranks on it.

    Args: network: its bandwidth, its latency from 0.1 ms, and its ranks_per_node are made.

    Raises: InputError where a program, a right or MPICH is missing.
    """
    check_emulation(num_ranks, network)
    remove_leftovers()
    stopped = {}
    if threading.current_thread() is threading.main_thread():
        stopped = {number: signal.signal(number, lambda number, _: sys.exit(128 + number)) for number in ENDING}
    folder = Path(tempfile.mkdtemp(prefix=f"{PREFIX}-nodes-"))
    nodes = Nodes(folder, network, num_ranks)
    before = dict(os.environ)
    try:
        nodes.make()
        os.environ.update(nodes.variables())
        yield nodes
    finally:
        os.environ.clear()
        os.environ.update(before)
        nodes.remove()
        shutil.rmtree(folder, ignore_errors=True)
        for number, handler in stopped.items():
            signal.signal(number, handler)


def check_emulation(num_ranks: int, network: Network) -> None:
    """Raise InputError where this machine, or this user, cannot emulate a network."""
    missing = [name for name in PROGRAMS if shutil.which(name) is None]
    if missing:
        raise InputError(f"a network cannot be emulated, {', '.join(missing)} missing: install iproute2 and util-linux")
    if os.geteuid() != 0:
        raise InputError("a network cannot be emulated: making network namespaces needs root; leave --emulate out")
    if mpi_flavor(find_mpiexec()) != "mpich":
        raise InputError("a network cannot be emulated: that is done with MPICH, pip install 'distgnn[mpich]'")
    if num_ranks > MOST_NODES * network.ranks_per_node:
        raise InputError(f"a network of at most {MOST_NODES} nodes is emulated, not for {num_ranks} ranks")


class Nodes:
    """The nodes, by number from 1. Args: folder: where the scripts lie that log in and start ranks.

    Attributes: hosts: as `call_on_ranks` takes them.
    """

    def __init__(self, folder: Path, network: Network, num_ranks: int):
        self.name: str = f"{PREFIX}-{os.getpid()}-{folder.name[-4:]}"
        self.switch: str = f"{self.name}-switch"
        self._network, self._folder, each = network, folder, min(network.ranks_per_node, num_ranks)
        counts = [min(each, num_ranks - first) for first in range(0, num_ranks, each)]
        self.numbers = range(1, len(counts) + 1)
        places = zip(self.numbers, counts, strict=True)
        self.hosts: list[str] = [f"10.77.0.{number}:{count}" for number, count in places]
        self.shared = each > 1
        cores = sorted(os.sched_getaffinity(0))
        share = len(cores) // len(counts)  # of a node; too few cores are everybody's
        first = f"{cores[0]} + (number - 1) * {share}"
        pin = f"taskset -c $(({first}))-$(({first} + {share - 1}))" if share else ""
        for file, text in (("enter", ENTER), ("mpiexec", MPIEXEC)):
            words = {"PIN": pin, "NAME": self.name, "REAL": find_mpiexec()}
            for word, value in words.items():
                text = re.sub(rf"\b{word}\b", value, text)
            (folder / file).write_text(text)
            (folder / file).chmod(0o755)

    def make(self) -> None:
        run("ip", "netns", "add", self.switch)
        run("ip", "-n", self.switch, "link", "add", "eth0", "mtu", MTU, "type", "bridge")
        run("ip", "-n", self.switch, "addr", "add", "10.77.0.254/24", "dev", "eth0")
        run("ip", "-n", self.switch, "link", "set", "eth0", "up")
        run("ip", "-n", self.switch, "link", "set", "lo", "up")
        for number in self.numbers:
            node, port = f"{self.name}-{number}", f"port{number}"
            run("ip", "netns", "add", node)
            ends = (port, "mtu", MTU, "type", "veth", "peer", "name", "eth0", "netns", node)
            run("ip", "-n", self.switch, "link", "add", *ends)
            run("ip", "-n", self.switch, "link", "set", port, "master", "eth0", "up")
            run("ip", "-n", node, "addr", "add", f"10.77.0.{number}/24", "dev", "eth0")
            run("ip", "-n", node, "link", "set", "eth0", "mtu", MTU, "up")
            run("ip", "-n", node, "link", "set", "lo", "up")
            self.shape(node, "eth0", self._network.latency)
            self.shape(self.switch, port)

    def shape(self, namespace: str, device: str, latency: float = 0.0) -> None:
        """Let a device send as the network does: a bucket of 2 ms (a large segment at least), a queue of 50 ms."""
        rate = self._network.bandwidth
        burst, queue = max(int(rate * 0.002), 70_000), max(int(rate * (0.05 + latency)), 1_000_000)
        words = ("rate", f"{int(8 * rate)}bit", "burst", burst, "limit", queue)
        run("tc", "-n", namespace, "qdisc", "replace", "dev", device, "root", "handle", "1:", "tbf", *words)
        if latency >= LEAST_LATENCY:
            delay = ("netem", "delay", f"{latency * 1e6:.0f}us", "limit", 100_000)
            run("tc", "-n", namespace, "qdisc", "add", "dev", device, "parent", "1:1", *delay)

    def variables(self) -> dict[str, str]:
        """What the launcher and MPICH must find in the environment."""
        found = {"DISTGNN_MPIEXEC": str(self._folder / "mpiexec"), "HYDRA_LAUNCHER": "ssh", "HYDRA_IFACE": "eth0"}
        found |= {"HYDRA_LAUNCHER_EXEC": str(self._folder / "enter")}
        found |= {"MPICH_CH4_NETMOD": "ofi", "FI_PROVIDER": "tcp", "FI_TCP_IFACE": "eth0"}
        found |= {"MPIR_CVAR_ENABLE_HEAVY_YIELD": "1"}
        return found if self.shared else found | {"MPIR_CVAR_NOLOCAL": "1"}

    def crossed_bytes(self) -> int:
        """Bytes that nodes have sent over their links so far."""
        links = json.loads(run("ip", "-n", self.switch, "-s", "-j", "link", "show"))
        return sum(one["stats64"]["rx"]["bytes"] for one in links if one["ifname"].startswith("port"))

    def remove(self) -> None:
        """Deleting a namespace deletes its devices and their other ends."""
        _remove([self.switch, *(f"{self.name}-{number}" for number in self.numbers)])


def remove_leftovers() -> None:
    """Remove namespaces whose maker is gone."""
    made = re.findall(rf"^({PREFIX}-(\d+)-\S+)", run("ip", "netns", "list"), re.MULTILINE)
    _remove([name for name, pid in made if not Path(f"/proc/{pid}").exists()])


def _remove(namespaces: list[str]) -> None:
    for name in namespaces:
        with suppress(InputError):  # it is gone
            for pid in run("ip", "netns", "pids", name).split():
                with suppress(OSError):
                    os.kill(int(pid), signal.SIGKILL)
            run("ip", "netns", "del", name)


def run(*words: Any) -> str:
    """What a program prints. Raises: InputError with what it says where it fails."""
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True, check=False)
    if done.returncode:
        said = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        raise InputError(f"a network cannot be emulated: {' '.join(map(str, words))}: {said}; leave --emulate out")
    return done.stdout
