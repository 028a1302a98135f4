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
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "harness"))
from mutants import Mutant, faults_of, read_mutants
from scratch import Scratch

LEAST = 0.95  # of all that are run
LIMIT = 600.0  # seconds for the tests of one fault


def main() -> None:
    """Run the faults that the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", help="name of a fault; may be given again")
    parser.add_argument("--area", action="append", help="name of a table; may be given again")
    parser.add_argument("--results", type=Path, default=Path(tempfile.gettempdir()) / "distgnn-mutants.json")
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
    results = json.loads(args.results.read_text()) if args.results.exists() else {}
    waiting = [one for one in chosen if one.tests and (args.again or one.digest not in results)]
    if waiting:
        _run_all(waiting, results, args.results)
    sys.exit(_report(chosen, results))


def _run_all(waiting: list[Mutant], results: dict[str, str], file: Path) -> None:
    """First the tests of all of them without any fault: who fails then sees nothing."""
    copy = Scratch()
    try:
        every = tuple(sorted({test for one in waiting for test in one.tests}))
        _, sick, _ = copy.run(None, every, LIMIT * len(waiting), "--maxfail=1000")
        for mutant in waiting:
            tests = tuple(test for test in mutant.tests if not any(one.startswith(test) for one in sick))
            code, failed, seconds = copy.run(mutant, tests, LIMIT) if tests else (5, [], 0.0)
            outcome = {0: "survived", 4: "no tests", 5: "no tests"}.get(code, "caught")  # 4, 5: pytest found none
            results[mutant.digest] = outcome
            file.write_text(json.dumps(results, indent=1))
            by = failed[0].rpartition("::")[2] if failed else "out of time" if code is None else f"exit code {code}"
            print(f"{outcome:>9} {seconds:6.1f} s  {mutant.area}: {mutant.name}  {by if code else ''}", flush=True)
    finally:
        copy.close()


def _report(chosen: list[Mutant], results: dict[str, str]) -> int:
    """Print what was not caught and the score; the exit code."""
    found = [(one, results[one.digest]) for one in chosen if one.tests]
    for mutant, outcome in found:
        if outcome != "caught":
            print(f"{outcome:>9}  {mutant.area}: {mutant.name} ({mutant.file}): {mutant.means}")
    outcomes = [outcome for _, outcome in found]
    told = ", ".join(f"{outcomes.count(name)} {name}" for name in ("caught", "survived", "no tests"))
    share = outcomes.count("caught") / len(found) if found else 0.0
    equivalent = sum(bool(one.equivalent) for one in chosen)
    print(f"{len(chosen)} faults: {told}, {equivalent} that no test can tell; caught of those run: {100 * share:.1f} %")
    return int(share < LEAST)


if __name__ == "__main__":
    main()
