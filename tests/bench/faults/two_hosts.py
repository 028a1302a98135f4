"""`distgnn launch` on two hosts, each a network namespace of this machine: training, a signal, and the death of a host.

    python tests/bench/faults/two_hosts.py WORK         (root, iproute2, MPICH)

Exits 1 where something was not as it should be. Faults of the network, and healing: network.py.
"""

import argparse
import json
import os
import signal
import sys
import time
from pathlib import Path

from job import Job, all_processes, end_on_signals
from machines import Machines, machines, wait_for


def on_hosts(work: Path, net: Machines, *words) -> Job:
    """Start `distgnn launch` on host 1."""
    net.write_hosts(work / "hosts.txt", [1, 2])
    launch = ("launch", "--hosts", work / "hosts.txt", "--threads", 1, "--", *words)
    return Job(list(launch), work / "run", before=net.before(), variables=net.variables())


def expect(good: bool, text: str) -> bool:
    print(text if good else f"NOT AS EXPECTED: {text}", flush=True)
    return good


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("work", type=Path)
    work = parser.parse_args().work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    end_on_signals()
    from distgnn.partition import partition_graph

    partition_graph("communities:nodes=3000,feats=16", 2, work / "parts", method="libra", overwrite=True)
    run = work / "run"
    train = ("train", work / "parts", "--hidden-feats", 32, "--eval-every", 10, "--quiet", "--run-dir", run)
    good = []
    with machines(work, 2) as net:
        code = on_hosts(work, net, *train, "--epochs", 10, "--overwrite").launcher.wait(400)
        summary = json.loads((run / "summary.json").read_text())
        exchanged, sent = summary["sent_bytes_per_epoch"] * 10, net.sent_bytes(1)
        text = f"train: exit {code}, {summary['ranks']} ranks, loss {summary['final_loss']:.6f}; host 1 sent {sent:,} "
        text += f"bytes over the link, both ranks exchanged {exchanged:,} in 10 epochs"
        good.append(expect(code == 0 and 2 * sent > exchanged, text))
        print(f"log of rank 1: {(run / 'logs' / 'rank-1.log').read_text().splitlines()[0]}")
        job = on_hosts(work, net, *train, "--epochs", 100000, "--resume", "--checkpoint-every", 20)
        wait_for(lambda: (run / "checkpoint" / "epoch-00000020").exists())
        os.kill(job.launcher.pid, signal.SIGTERM)  # `ip netns exec` has become the launcher
        code, newest = job.launcher.wait(120), max(path.name for path in (run / "checkpoint").glob("epoch-*"))
        good.append(expect(code == 143, f"SIGTERM: exit {code}, newest {newest}"))
        job = on_hosts(work, net, *train, "--epochs", 100000, "--resume", "--checkpoint-every", 20)
        file, before = job.file(), job.epochs()
        wait_for(lambda: job.file() != file and job.epochs() > before + 10)
        began = time.monotonic()
        net.signal(2, signal.SIGKILL)
        code = job.launcher.wait(120)
        took = time.monotonic() - began
        time.sleep(1)
        left = len(all_processes())
        good.append(
            expect(code not in (0, 1, 2) and not left, f"death of host 2: exit {code} after {took:.2f} s, {left} left")
        )
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
