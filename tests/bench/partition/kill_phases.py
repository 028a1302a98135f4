"""Kill a cut on disk with SIGKILL in every phase, go on, and compare every file with those of a run left alone.

    python tests/bench/partition/kill_phases.py FOLDER [--source rmat:scale=14,edge_factor=16] [--parts 4]
    python tests/bench/partition/kill_phases.py FOLDER --whole P412 --source G412 --parts 64 --memory 8GB --threads 2

FOLDER is made and removed again. A phase is entered when the one before it has left its file in the work folder. Prints
a line for each phase: where it was killed, what the next run says it goes on after, and whether the bytes are the same.

With `--whole`, the folder of a run that was left alone, a graph folder is cut once, and killed two seconds into every
phase in turn: for graphs of which twelve runs would take hours.
"""

import argparse
import hashlib
import shutil
import subprocess
import sys
import time
from pathlib import Path

from distgnn.datasets import load_graph

PHASES = (
    "edges", "sort_0", "cluster", "sort_1", "place", "refine_0", "refine_1", "refine_2", "deal", "owners",
    "feats", "part_1",
)  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--source", default="rmat:scale=14,edge_factor=16,feats=16")
    parser.add_argument("--parts", default="4")
    parser.add_argument("--memory", default="2GB")
    parser.add_argument("--threads", default="1")
    parser.add_argument("--whole", type=Path)
    args = parser.parse_args()
    args.folder.mkdir()
    try:
        if args.whole is not None:
            command = [sys.executable, "-m", "distgnn.cli", "partition", args.source, "--parts", args.parts, "--json"]
            return killed_in_turn([*command, "--memory", args.memory, "--threads", args.threads], args)
        graph = args.folder / "graph"
        load_graph(args.source).save(graph)
        command = [sys.executable, "-m", "distgnn.cli", "partition", str(graph), "--parts", args.parts]
        command += ["--method", "cmr-stream", "--memory", args.memory, "--threads", args.threads, "--json"]
        subprocess.run([*command, "--out", str(args.folder / "whole")], check=True, stdout=subprocess.DEVNULL)
        wrong = sum(not killed_in(number, command, args.folder) for number in range(len(PHASES)))
    finally:
        shutil.rmtree(args.folder)
    print(f"{len(PHASES) - wrong} of {len(PHASES)} killed runs went on to the same files")
    return wrong


def killed_in(number, command, folder):
    """Kill a run as soon as the phase before this one is finished; go on; compare."""
    work, out = folder / ".parts.work", folder / "parts"
    marker = work / ("settings.json" if number == 0 else f"{PHASES[number - 1]}.json")
    run = subprocess.Popen([*command, "--out", str(out)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while not marker.exists() and run.poll() is None:
        time.sleep(0.001)
    killed = run.poll() is None
    run.kill()
    run.wait()
    again = subprocess.run([*command, "--out", str(out)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    same = out.is_dir() and digest(out) == digest(folder / "whole")
    left = sorted(path.name for path in folder.iterdir() if path.name not in ("graph", "whole", "parts"))
    state = "killed" if killed else "was over"
    line = again.stderr.strip() or "starts anew"
    print(
        f"{PHASES[number]:9} {state}; {line}; {'same bytes' if same else 'OTHER BYTES'}; left behind: {left}",
        flush=True,
    )
    shutil.rmtree(out, ignore_errors=True)
    return same and killed and not left


def killed_in_turn(command, args):
    """One run, killed in each phase and started again; returns 1 where its files are others than the whole run's."""
    work, out, started = args.folder / ".parts.work", args.folder / "parts", time.monotonic()
    for number, phase in enumerate(PHASES):
        # Of the last one: when the first part is there
        marker = work / ("settings.json" if number == 0 else f"{PHASES[number - 1]}.json")
        run = subprocess.Popen(
            [*command, "--out", str(out)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        while not marker.exists() and run.poll() is None:
            time.sleep(0.01)
        time.sleep(2)
        state = "killed" if run.poll() is None else "was over"
        run.kill()
        said = run.communicate()[1].strip().splitlines()
        print(
            f"{phase:9} {state} after {time.monotonic() - started:.0f} s; {said[-1] if said else 'starts anew'}",
            flush=True,
        )
    subprocess.run([*command, "--out", str(out)], stdout=subprocess.DEVNULL, check=True)
    same = digest(out) == digest(args.whole)
    print(f"{time.monotonic() - started:.0f} s in all; {'same bytes' if same else 'OTHER BYTES'}")
    return int(not same)


def digest(folder):
    total = hashlib.sha256()
    for path in sorted(folder.rglob("*.npy")):
        total.update(str(path.relative_to(folder)).encode() + path.read_bytes())
    return total.hexdigest()


if __name__ == "__main__":
    sys.exit(main())
