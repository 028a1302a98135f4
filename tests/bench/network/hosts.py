"""Hosts on one machine: network namespaces, each with a link of a given rate to a switch, and MPI between them.

    host 0            host 1            …        one network namespace each, with a device eth0, 10.77.0.1, .2, …
      eth0              eth0                     tbf: what the host sends leaves at `rate`
       │                 │
    port 0            port 1            …        in the switch's own namespace, on a bridge
                                                 tbf: what the host receives arrives at `rate`

Where there are cores enough every host has one of its own. MPICH would talk through shared memory between processes of
one kernel: its TCP provider is asked for, and every host has a name of its own. Needs root, iproute2 and the MPICH of
`distgnn[mpich]`. The machine's own network is not touched;
everything is removed at the end, also after an error or a signal.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

PREFIX = f"distgnn-{os.getpid()}"
MTU = 9000
LAUNCHER = """#!/bin/sh
# called as ssh would be: options, host, command
while [ "${1#-}" != "$1" ]; do shift; done
host=$1; shift
number=$((${host##*.} - 1))
exec PIN ip netns exec PREFIX-$number sh -c "$*"
"""


class NetworkError(RuntimeError):
    """The machine does not let us make hosts; the text says what is missing."""


@contextmanager
def hosts(count: int, rate: str, per_host: int = 1):
    """Make `count` hosts with links of `rate` (as tc writes it: "1gbit"); yields the function that runs MPI on them.

    Args: per_host: ranks on each; they talk through memory, as on a machine of their own.

    Raises:
        NetworkError: where a program or a right is missing.
    """
    for program in ("ip", "tc"):
        if shutil.which(program) is None:
            raise NetworkError(f"{program} is missing: install iproute2")
    if os.geteuid() != 0:
        raise NetworkError("making network namespaces needs root")
    stopped = {number: signal.signal(number, _stop) for number in (signal.SIGTERM, signal.SIGHUP)}
    folder = Path(tempfile.mkdtemp(prefix=PREFIX))
    try:
        _make(count, rate)
        script = folder / "launch"
        pin = "taskset -c $number" if count * per_host <= (os.cpu_count() or 1) and shutil.which("taskset") else ""
        script.write_text(LAUNCHER.replace("PREFIX", PREFIX).replace("PIN", pin))
        script.chmod(0o755)
        yield lambda *words: _run(script, count, per_host, words)
    finally:
        _remove(count)
        shutil.rmtree(folder, ignore_errors=True)
        for number, handler in stopped.items():
            signal.signal(number, handler)


def _stop(number, _frame):
    sys.exit(128 + number)


def _make(count: int, rate: str) -> None:
    switch = f"{PREFIX}-switch"
    _ip("netns", "add", switch)
    _ip("-n", switch, "link", "add", "bridge", "mtu", MTU, "type", "bridge")
    _ip("-n", switch, "link", "set", "bridge", "up")
    for number in range(count):
        host, port = f"{PREFIX}-{number}", f"port{number}"
        _ip("netns", "add", host)
        _ip("-n", switch, "link", "add", port, "mtu", MTU, "type", "veth", "peer", "name", "eth0", "netns", host)
        _ip("-n", switch, "link", "set", port, "master", "bridge", "up")
        _ip("-n", host, "addr", "add", f"10.77.0.{number + 1}/24", "dev", "eth0")
        _ip("-n", host, "link", "set", "eth0", "mtu", MTU, "up")
        _ip("-n", host, "link", "set", "lo", "up")
        _limit(host, "eth0", rate)
        _limit(switch, port, rate)


def _limit(namespace: str, device: str, rate: str) -> None:
    """Let a device send at `rate`: a bucket of 2 ms (at least two large segments), a queue of 50 ms."""
    bits = float(rate.removesuffix("gbit")) * 1e9 if rate.endswith("gbit") else float(rate.removesuffix("mbit")) * 1e6
    burst, queue = max(int(bits / 8 * 0.002), 140_000), max(int(bits / 8 * 0.05), 1_000_000)
    words = ("qdisc", "add", "dev", device, "root", "tbf", "rate", rate, "burst", burst, "limit", queue)
    _command("tc", "-n", namespace, *words)


def _remove(count: int) -> None:
    """Deleting a namespace deletes its devices and their other ends."""
    for name in (*range(count), "switch"):
        subprocess.run(["ip", "netns", "del", f"{PREFIX}-{name}"], capture_output=True, check=False)


def _run(script: Path, count: int, per_host: int, words: tuple) -> None:
    """Run `python WORDS` with ranks of one thread each."""
    from distgnn.system.launch import THREAD_VARIABLES, find_mpiexec, torch_environment

    environment = os.environ | torch_environment() | dict.fromkeys(THREAD_VARIABLES, "1")
    environment |= {
        "DISTGNN_NUM_THREADS": "1",
        "MPICH_CH4_NETMOD": "ofi",
        "MPIR_CVAR_ENABLE_HEAVY_YIELD": "1",
        "FI_PROVIDER": "tcp",
        "FI_TCP_IFACE": "eth0",
    }
    if per_host == 1:
        environment["MPIR_CVAR_NOLOCAL"] = "1"
    addresses = ",".join(f"10.77.0.{number + 1}" for number in range(count))
    command = ["ip", "netns", "exec", f"{PREFIX}-0", find_mpiexec(), "-launcher", "ssh", "-launcher-exec", str(script)]
    command += ["-localhost", "10.77.0.1", "-hosts", addresses]
    command += ["-n", str(count * per_host), "-ppn", str(per_host), sys.executable]
    process = subprocess.Popen([*command, *map(str, words)], env=environment)
    try:
        if process.wait():
            raise NetworkError(f"{' '.join(map(str, words))}: exit code {process.returncode}")
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait(10)


def _ip(*words) -> None:
    _command("ip", *words)


def _command(*words) -> None:
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True, check=False)
    if done.returncode:
        raise NetworkError(f"{' '.join(map(str, words))}: {done.stderr.strip()}")
