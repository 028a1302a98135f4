"""Kill a cut on disk with SIGKILL in each of its phases, and compare its files with those of a run left alone.

    python tests/bench/partition/kill_phases.py FOLDER [--source rmat:scale=14,edge_factor=16] [--parts 4]
    python tests/bench/partition/kill_phases.py FOLDER --whole P412 --source G412 --parts 64 --memory 8GB --seconds 2

FOLDER is made and removed again. One run is started once for each phase, killed `--seconds` after it entered the phase,
and goes on in the next. A phase is entered when the one before it has left its file in the work folder. Prints a line
for each phase: when it was killed, and what that run said it goes on after. `--whole` is the folder of a run that was
left alone; without it there is such a run first.
"""

import argparse
import hashlib
import shutil
import subprocess
import sys
import time
from pathlib import Path

PHASES = (
    "edges", "sort_0", "cluster", "sort_1", "place", "refine_0", "refine_1", "refine_2", "deal", "owners",
    "feats", "part_1",
)  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--source", default="rmat:scale=14,edge_factor=16,feats=16")
    parser.add_argument("--parts", default="4")
    parser.add_argument("--memory", default="2GB")
    parser.add_argument("--threads", default="1")
    parser.add_argument("--seconds", type=float, default=0.0)
    parser.add_argument("--whole", type=Path)
    args = parser.parse_args()
    command = [sys.executable, "-m", "distgnn.cli", "partition", args.source, "--parts", args.parts, "--json"]
    command += ["--method", "cmr-stream", "--memory", args.memory, "--threads", args.threads, "--out"]
    args.folder.mkdir()
    try:
        whole = args.whole or args.folder / "whole"
        if args.whole is None:
            subprocess.run([*command, str(whole)], check=True, stdout=subprocess.DEVNULL)
        return killed_in_turn(command, args.folder, whole, args.seconds)
    finally:
        shutil.rmtree(args.folder)


def killed_in_turn(command: list[str], folder: Path, whole: Path, seconds: float) -> int:
    """Kill one run in each phase; returns 1 where its files are others than the whole run's."""
    work, out, started = folder / ".parts.work", folder / "parts", time.monotonic()
    for before, phase in zip(("settings", *PHASES), PHASES, strict=False):
        run = subprocess.Popen([*command, str(out)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        while not (work / f"{before}.json").exists() and run.poll() is None:
            time.sleep(0.001)
        time.sleep(seconds)
        state = "killed" if run.poll() is None else "was over"
        run.kill()
        said = run.communicate()[1].strip().splitlines()
        after = time.monotonic() - started
        print(f"{phase:9} {state} after {after:.0f} s; {said[-1] if said else 'starts anew'}", flush=True)
    if not out.exists():
        subprocess.run([*command, str(out)], stdout=subprocess.DEVNULL, check=True)
    same, left = digest(out) == digest(whole), work.exists()
    took = time.monotonic() - started
    print(
        f"{took:.0f} s in all; {'same bytes' if same else 'OTHER BYTES'}{'; left behind: ' + work.name if left else ''}"
    )
    return int(left or not same)


def digest(folder: Path) -> str:
    total = hashlib.sha256()
    for path in sorted(folder.rglob("*.npy")):
        total.update(str(path.relative_to(folder)).encode() + path.read_bytes())
    return total.hexdigest()


if __name__ == "__main__":
    sys.exit(main())
