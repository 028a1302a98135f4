"""Mutation testing: one small fault at a time in a copy of the checkout; the tests named for it must see it.

    python tests/bench/mutation/run.py                        # all that have no result yet; exits 1 below 95 %
    python tests/bench/mutation/run.py --only "stray gradients are lost" --area train
    python tests/bench/mutation/run.py --list

The faults are in the tables beside this file (tests/harness/mutants.py says what a row holds), reviewed by hand. A
fault is `caught` if one of its tests fails that passes without it, `survived` if none does. Results are kept in
--results by a hash of the fault, the file that it is in and its tests: a call goes on where the last one ended. Nothing
is changed in the checkout. Expect 5 to 15 s for each on two cores, more where kernels are compiled.
"""

import argparse
import json
import queue
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "harness"))
from mutants import ROOT, Mutant, faults_of, files_digest, read_mutants
from scratch import Scratch

LEAST = 0.95  # of all that are run
PROGRAM = ("distgnn", "kernels", "partition", "datasets")
LIMIT = 600.0  # seconds for the tests of one fault


def main() -> None:
    """Run the faults that the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", help="name of a fault; may be given again")
    parser.add_argument("--area", action="append", help="name of a table; may be given again")
    parser.add_argument("--results", type=Path, default=Path(tempfile.gettempdir()) / "distgnn-mutants.json")
    parser.add_argument("--scratch", type=Path, help="keep the copy here (default: a temporary folder)")
    parser.add_argument("--jobs", type=int, default=1, help="copies that work at the same time")
    parser.add_argument("--seconds", type=float, default=1e9, help="begin no other fault after these")
    parser.add_argument("--again", action="store_true", help="also those that have a result")
    parser.add_argument("--list", action="store_true", help="only print the faults")
    args = parser.parse_args()
    chosen = [one for one in read_mutants() if args.area is None or one.area in args.area]
    chosen = [one for one in chosen if args.only is None or one.name in args.only]
    wrong = [fault for mutant in chosen for fault in faults_of(mutant)]
    if wrong or not chosen:
        sys.exit("\n".join(wrong) or "no such fault")
    if args.list:
        print("\n".join(f"{one.area:>10}  {one.name}: {one.means}" for one in chosen))
        return
    results = Results(args.results)
    _run_all(chosen, results, args)
    sys.exit(_report(chosen, results))


class Results:
    """Outcomes by digest of the fault, and which tests pass without any; kept in a file."""

    def __init__(self, file: Path):
        self.file = file
        kept = json.loads(file.read_text()) if file.exists() else {}
        self.outcomes: dict[str, dict] = kept.get("outcomes", {})
        self.program = files_digest(path for top in PROGRAM for path in (ROOT / top).rglob("*.py"))
        self.healthy: dict[str, bool] = kept.get("healthy", {}) if kept.get("program") == self.program else {}

    def keep(self) -> None:
        """Write the file anew."""
        kept = {name: getattr(self, name) for name in ("program", "outcomes", "healthy")}
        self.file.write_text(json.dumps(kept, indent=1))


def _run_all(chosen: list[Mutant], results: Results, args: argparse.Namespace) -> None:
    waiting = [one for one in chosen if one.tests and (args.again or one.digest not in results.outcomes)]
    unproved = [one for one in chosen if one.tests and _state(one, results) in ("not run", "unproved")]
    if not waiting and not unproved:
        return
    began, free, writing = time.monotonic(), queue.SimpleQueue(), threading.Lock()
    copies = [Scratch(args.scratch / str(number) if args.scratch else None) for number in range(args.jobs)]
    for copy in copies:
        free.put(copy)

    def one(mutant: Mutant) -> None:
        if time.monotonic() - began > args.seconds:
            return
        copy = free.get()
        try:
            found = _outcome(copy, mutant)
        finally:
            free.put(copy)
        with writing:
            results.outcomes[mutant.digest] = found
            results.keep()
        by = found["by"].rpartition("::")[2]
        print(f"{found['outcome']:>9} {found['seconds']:6.1f} s  {mutant.area}: {mutant.name}  {by}", flush=True)

    try:
        with ThreadPoolExecutor(args.jobs) as pool:
            list(pool.map(one, waiting))
        if time.monotonic() - began < args.seconds:
            _try_without(copies[0], unproved, results)
    finally:
        for copy in copies:
            copy.close()


def _outcome(copy: Scratch, mutant: Mutant) -> dict:
    """Whether a test failed, and which."""
    code, failed, seconds = copy.run(mutant, mutant.tests, LIMIT)
    by = failed[0] if failed else "out of time" if code is None else f"exit code {code}"
    return {
        "name": mutant.name,
        "outcome": {0: "survived", 4: "no tests", 5: "no tests"}.get(code, "caught"),  # 4, 5: pytest found none
        "by": "" if code == 0 else by,
        "seconds": round(seconds, 1),
    }


def _try_without(copy: Scratch, unproved: list[Mutant], results: Results) -> None:
    """Run the tests of faults that were caught once without any: those of an area in one session."""
    for area in sorted({mutant.area for mutant in unproved}):
        lists = {mutant.tests for mutant in unproved if mutant.area == area and _state(mutant, results) == "unproved"}
        every = sorted({test for tests in lists for test in tests})
        if not every:
            continue
        code, failed, _ = copy.run(None, tuple(every), 10 * LIMIT, "--maxfail=1000")
        for tests in lists:
            results.healthy[_key(tests)] = code in (0, 1) and not any(one.startswith(tests) for one in failed)
        results.keep()


def _state(mutant: Mutant, results: Results) -> str:
    """caught; survived; no tests: they fail without the fault too; unproved: not yet tried without it; not run."""
    found = results.outcomes.get(mutant.digest)
    if found is None or found["outcome"] != "caught":
        return "not run" if found is None else found["outcome"]
    healthy = results.healthy.get(_key(mutant.tests))
    return "unproved" if healthy is None else "caught" if healthy else "no tests"


def _key(tests: tuple[str, ...]) -> str:
    return " ".join((*tests, files_digest(ROOT / test.partition("::")[0] for test in tests)))


def _report(chosen: list[Mutant], results: Results) -> int:
    """Print what was not caught and the score; the exit code."""
    found = [(one, _state(one, results)) for one in chosen if one.tests]
    for mutant, state in found:
        if state != "caught":
            print(f"{state:>9}  {mutant.area}: {mutant.name} ({mutant.file}): {mutant.means}")
    states = [state for _, state in found]
    counts = {name: states.count(name) for name in ("caught", "survived", "no tests", "unproved", "not run")}
    run = len(found) - counts["not run"]
    share = counts["caught"] / run if run else 0.0
    equivalent = sum(bool(one.equivalent) for one in chosen)
    told = ", ".join(f"{count} {name}" for name, count in counts.items())
    print(f"{len(chosen)} faults: {told}, {equivalent} that no test can tell; caught of those run: {100 * share:.1f} %")
    return int(share < LEAST or counts["not run"] > 0)


if __name__ == "__main__":
    main()
