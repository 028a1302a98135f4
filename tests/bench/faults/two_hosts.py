"""`distgnn launch` on two hosts, each a network namespace of this machine: training, a signal, and the death of a host.

    python tests/bench/faults/two_hosts.py WORK         (root, iproute2, MPICH)

MPICH is kept from its shared memory (MPIR_CVAR_NOLOCAL), so that everything crosses the link as TCP.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

NAME = f"distgnn{os.getpid()}"
LAUNCHER = """#!/bin/sh
while [ "${1#-}" != "$1" ]; do shift; done
host=$1; shift
exec ip netns exec NAME-${host##*.} sh -c "$*"
"""


def ip(*words) -> None:
    subprocess.run(["ip", *map(str, words)], check=True)


def make_hosts() -> None:
    for host in (1, 2):
        ip("netns", "add", f"{NAME}-{host}")
    ip("-n", f"{NAME}-1", "link", "add", "eth0", "type", "veth", "peer", "name", "eth0", "netns", f"{NAME}-2")
    for host in (1, 2):
        ip("-n", f"{NAME}-{host}", "addr", "add", f"10.78.0.{host}/24", "dev", "eth0")
        for device in ("lo", "eth0"):
            ip("-n", f"{NAME}-{host}", "link", "set", device, "up")


def on_hosts(work: Path, *words) -> subprocess.Popen:
    """Start `distgnn launch` on host 1."""
    (work / "hosts.txt").write_text("10.78.0.1\n10.78.0.2\n")
    script = work / "enter"
    script.write_text(LAUNCHER.replace("NAME", NAME))
    script.chmod(0o755)
    environment = os.environ | {
        "HYDRA_LAUNCHER": "ssh",
        "HYDRA_LAUNCHER_EXEC": str(script),
        "HYDRA_IFACE": "eth0",
        "MPICH_CH4_NETMOD": "ofi",
        "MPIR_CVAR_NOLOCAL": "1",
        "FI_PROVIDER": "tcp",
        "FI_TCP_IFACE": "eth0",
    }
    command = ["ip", "netns", "exec", f"{NAME}-1", sys.executable, "-m", "distgnn.cli", "launch"]
    command += ["--hosts", str(work / "hosts.txt"), "--threads", "1", "--", *map(str, words)]
    return subprocess.Popen(command, env=environment)


def pids_of(host: int) -> list[int]:
    done = subprocess.run(["ip", "netns", "pids", f"{NAME}-{host}"], capture_output=True, text=True, check=False)
    return [int(word) for word in done.stdout.split()]


def sent_bytes() -> int:
    command = ["ip", "-n", f"{NAME}-1", "-s", "-j", "link", "show", "eth0"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)[0]["stats64"]["tx"]["bytes"]


def wait_for(path: Path, seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} did not come"
        time.sleep(0.05)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("work", type=Path)
    work = parser.parse_args().work
    work.mkdir(parents=True, exist_ok=True)
    from distgnn.partition import partition_graph

    partition_graph("communities:nodes=3000,feats=16", 2, work / "parts", method="libra", overwrite=True)
    make_hosts()
    try:
        run = work / "run"
        train = ("train", work / "parts", "--hidden-feats", 32, "--eval-every", 10, "--quiet", "--run-dir", run)
        code = on_hosts(work, *train, "--epochs", 10, "--overwrite").wait(200)
        summary = json.loads((run / "summary.json").read_text())
        exchanged = summary["sent_bytes_per_epoch"] * 10
        print(f"train: exit {code}, {summary['ranks']} ranks, loss {summary['final_loss']:.6f}; ", end="")
        print(f"host 1 sent {sent_bytes():,} bytes over the link, both ranks exchanged {exchanged:,} in 10 epochs")
        log = (run / "logs" / "rank-1.log").read_text().splitlines()
        print(f"log of rank 1: {log[0]}")
        job = on_hosts(work, *train, "--epochs", 100000, "--resume", "--checkpoint-every", 20)
        wait_for(run / "checkpoint" / "epoch-00000020")
        launcher = next(pid for pid in pids_of(1) if b"launch" in Path(f"/proc/{pid}/cmdline").read_bytes())
        os.kill(launcher, signal.SIGTERM)
        print(f"SIGTERM: exit {job.wait(60)}, newest {max(path.name for path in (run / 'checkpoint').glob('epoch-*'))}")
        job = on_hosts(work, *train, "--epochs", 100000, "--resume", "--checkpoint-every", 20)
        before = len((run / "metrics.jsonl").read_text().splitlines())
        while len((run / "metrics.jsonl").read_text().splitlines()) < before + 10:
            time.sleep(0.05)
        began = time.monotonic()
        for pid in pids_of(2):
            os.kill(pid, signal.SIGKILL)
        code = job.wait(120)
        took = time.monotonic() - began
        time.sleep(1)
        print(f"death of host 2: exit {code} after {took:.2f} s, {len(pids_of(1)) + len(pids_of(2))} processes left")
    finally:
        for host in (1, 2):
            for pid in pids_of(host):
                os.kill(pid, signal.SIGKILL)
            subprocess.run(["ip", "netns", "del", f"{NAME}-{host}"], check=False)


if __name__ == "__main__":
    main()
