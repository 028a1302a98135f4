"""Scripts of one process, run on 1, 2 and 3 ranks beside the plain library, in float64: equal, refused, or a fault.

    python tests/bench/peers/run.py                       # every case
    python tests/bench/peers/run.py "rows x rows" "pyg:"  # cases whose name has one of these texts, or fits a pattern
    python tests/bench/peers/run.py --tree CHECKOUT       # of another checkout of distgnn
    python tests/bench/peers/run.py --list

Each case has one verdict per number of ranks: "equal"; "refused", with the line; "wrong", with what differs; "crashed";
"hung". Nothing is fetched. `--json FILE` keeps all of it, added to what the file holds of other cases and ranks; the
exit code is 1 where a case is wrong, crashed or hung. `--write` makes distgnn/interop/tried.json, which
`distgnn models` prints, of what the file holds.
"""

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
VERDICTS = ("equal", "refused", "wrong", "crashed", "hung", "not run")
FAULTS = ("wrong", "crashed", "hung")
BATCH = 200  # cases of one mpiexec: a graph keeps a communicator to the end


def main() -> int:
    """Run what is asked for, and print a row per case that is not equal, and counts by kind."""
    options = _options()
    tree = str(Path(options.tree).resolve())
    if options.inside != tree:  # cases import distgnn: of that tree
        env = dict(os.environ, PYTHONPATH=os.pathsep.join([tree, *os.environ.get("PYTHONPATH", "").split(os.pathsep)]))
        return subprocess.run(
            [sys.executable, __file__, *sys.argv[1:], "--inside", tree], env=env, check=False
        ).returncode
    sys.path.insert(0, str(HERE))
    from cases import select

    cases = select(options.names)
    if options.list:
        print(*(one.name for one in cases), sep="\n")
        return 0
    if options.write:
        write_tried(cases, json.loads(Path(options.json).read_text()), Path(options.tree))
        return 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(options.keep or temporary)
        folder.mkdir(parents=True, exist_ok=True)
        results = run_cases(cases, folder, options.ranks, options.seconds)
    show(cases, results, options.ranks, options.all)
    if options.json:
        kept = Path(options.json)
        before = json.loads(kept.read_text()) if kept.exists() else {}
        kept.write_text(json.dumps(before | {name: before.get(name, {}) | results[name] for name in results}, indent=1))
    return int(any(one["verdict"] in FAULTS for by_rank in results.values() for one in by_rank.values()))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--tree", default=str(HERE.parents[2]))
    parser.add_argument("--ranks", type=lambda text: [int(one) for one in text.split(",")], default=[1, 2, 3])
    parser.add_argument("--seconds", type=int, default=30, help="of one case")
    parser.add_argument("--keep", help="folder for parts and results, else a temporary one")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--write", action="store_true", help="the program's table of what --json FILE holds")
    parser.add_argument("--all", action="store_true", help="rows of equal cases, too")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    return parser.parse_args()


def run_cases(cases: list, folder: Path, ranks: list[int], seconds: int) -> dict[str, dict[str, Any]]:
    """name -> number of ranks -> verdict, line, seconds."""
    from worlds import write_parts

    results: dict[str, dict[str, Any]] = {one.name: {} for one in cases}
    plain = run_plain([one.name for one in cases], folder, seconds)
    for name, found in plain.items():
        if found["verdict"] != "equal":
            results[name]["plain"] = found | {"verdict": "not run"}
    names = [one.name for one in cases if "plain" not in results[one.name]]
    random = [one.name for one in cases if one.random and one.name in names]
    if ranks and 1 not in ranks and random:
        write_parts(folder, 1)
        run_batches(random, 1, folder, seconds)
    for count in ranks:
        write_parts(folder, count)
        for name, found in run_batches(names, count, folder, seconds).items():
            results[name][str(count)] = found
    return results


def run_plain(names: list[str], folder: Path, seconds: int) -> dict[str, dict[str, Any]]:
    """What the plain library gives; of a folder that is kept, what it gave to these same scripts before."""
    sources = [path for path in sorted(HERE.rglob("*.py")) if path.name != "run.py"]
    key = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()
    path = folder / "plain.json"
    before = json.loads(path.read_text()) if path.exists() else {}
    if before.get("key") != key:
        before = {"key": key, "found": {}}
    found = before["found"] | run_batches([name for name in names if name not in before["found"]], 0, folder, seconds)
    path.write_text(json.dumps({"key": key, "found": found}))
    return {name: found[name] for name in names}


def run_batches(names: list[str], ranks: int, folder: Path, seconds: int) -> dict[str, dict[str, Any]]:
    """Every case, in as many processes as hangs and crashes make necessary."""
    results: dict[str, dict[str, Any]] = {}
    left = list(names)
    while left:
        started = time.perf_counter()
        found, current, output = run_batch(left[:BATCH], ranks, folder, seconds)
        results |= found
        left = [name for name in left if name not in results]
        if current is not None and current in left:
            results[current] = ended_in(current, folder, max(ranks, 1), output)
            left.remove(current)
        elif not found:
            raise SystemExit(f"no case ran on {ranks} ranks:\n{output[-3000:]}")
        took = time.perf_counter() - started
        print(f"{ranks or 'plain'}: {len(results)} of {len(names)} cases, {took:.0f} s", file=sys.stderr, flush=True)
    return results


def run_batch(names: list[str], ranks: int, folder: Path, seconds: int) -> tuple[dict, str | None, str]:
    """What one start of processes found, the case it ended in before its time, and what it printed."""
    log, job, out = folder / "log.jsonl", folder / "job.json", folder / "out.txt"
    log.unlink(missing_ok=True)
    for trace in folder.glob("hung-*.txt"):
        trace.unlink()
    job.write_text(
        json.dumps({"ranks": ranks, "cases": names, "folder": str(folder), "seconds": seconds, "log": str(log)})
    )
    command = [sys.executable, str(HERE / "worker.py"), str(job)]
    if ranks:
        from distgnn.system.launch import find_mpiexec

        command = [find_mpiexec() or "mpiexec", "-n", str(ranks), *command]
    env = dict(os.environ, OMP_NUM_THREADS="1", DISTGNN_LAUNCHED="0")
    with out.open("w") as stream:
        subprocess.run(command, env=env, stdout=stream, stderr=subprocess.STDOUT, check=False)
    found, current = {}, None
    for line in map(json.loads, log.read_text().splitlines() if log.exists() else ()):
        if "start" in line:
            current = line["start"]
        elif "name" in line:
            found[line["name"]] = {key: line[key] for key in ("verdict", "line", "seconds")}
        else:
            current = None
    return found, current, out.read_text(errors="replace")


def ended_in(name: str, folder: Path, ranks: int, output: str) -> dict[str, Any]:
    """The verdict of a case in which a process ended: hung, or crashed."""
    traces = [folder / f"hung-{rank}.txt" for rank in range(ranks)]
    hung = [path.read_text() for path in traces if path.exists() and "Timeout" in path.read_text()]
    if hung:
        frames = [line.strip() for line in hung[0].splitlines() if line.strip().startswith("File")]
        return {"verdict": "hung", "line": " < ".join(frames[:4])[:500], "seconds": None}
    lines = [line for line in output.splitlines() if line.strip()]
    return {"verdict": "crashed", "line": f"process ended: {' | '.join(lines[-4:])[:500]}", "seconds": None}


def show(cases: list, results: dict[str, dict[str, Any]], ranks: list[int], everything: bool) -> None:
    """A row per case that is not equal, and counts by kind."""
    counts: dict[str, Counter] = {}
    for one in cases:
        found = results[one.name]
        verdicts = {count: entry["verdict"] for count, entry in found.items()}
        worst = max(verdicts.values(), key=VERDICTS.index)
        counts.setdefault(one.kind, Counter())[worst] += 1
        if everything or set(verdicts.values()) != {"equal"}:
            words = " ".join(f"{count}:{verdict}" for count, verdict in verdicts.items())
            lines = dict.fromkeys(entry["line"] for entry in found.values() if entry["line"])
            print(f"{one.name}\n    {words}", *(f"      {line}" for line in lines), sep="\n")
    print(f"\n{'kind':28}" + "".join(f"{verdict:>9}" for verdict in VERDICTS))
    for kind, count in counts.items():
        print(f"{kind:28}" + "".join(f"{count[verdict]:9}" for verdict in VERDICTS))
    total = sum(counts.values(), Counter())
    print(f"{'all':28}" + "".join(f"{total[verdict]:9}" for verdict in VERDICTS))


def write_tried(cases: list, results: dict[str, dict[str, Any]], tree: Path) -> None:
    """distgnn/interop/tried.json: counts by kind, and the lines of refusals. Raises: SystemExit for a fault."""
    equal, refused, alone, lines = Counter(), Counter(), Counter(), {}
    for one in cases:
        found = results.get(one.name, {})
        if "plain" in found:  # the plain library cannot run it
            continue
        verdicts = {count: entry["verdict"] for count, entry in found.items()}
        if set(verdicts) != {"1", "2", "3"} or set(verdicts.values()) & set(FAULTS):
            raise SystemExit(f"{one.name}: {verdicts}: run it on 1, 2 and 3 ranks, and mend what is wrong")
        if {verdicts["2"], verdicts["3"]} == {"equal"}:
            equal[one.kind] += 1
            continue
        refused[one.kind] += 1  # on several ranks; on one, most of these run
        alone[one.kind] += verdicts["1"] == "equal"
        line = next(entry["line"] for entry in found.values() if entry["verdict"] == "refused")
        lines.setdefault(one.name.rpartition(", ")[0] if one.kind.startswith("layers of ") else one.name, line)
    kinds = dict.fromkeys(one.kind for one in cases if equal[one.kind] or refused[one.kind])
    rows = [[kind, equal[kind], refused[kind], alone[kind]] for kind in kinds]
    by_line: dict[str, list[str]] = {}
    for name, line in lines.items():
        by_line.setdefault(line, []).append(name)
    texts = [[line, ", ".join(names)] for line, names in by_line.items()]
    tables = [f' "{name}": [\n' + ",\n".join(f"  {json.dumps(row, ensure_ascii=False)}" for row in of) + "\n ]"
              for name, of in (("kinds", rows), ("refused", texts))]  # fmt: skip
    path = tree / "distgnn" / "interop" / "tried.json"
    path.write_text("{\n" + ",\n".join(tables) + "\n}\n")


if __name__ == "__main__":
    sys.exit(main())
