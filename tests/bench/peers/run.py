"""Scripts of one process, run on 1, 2 and 3 ranks beside the plain library, in float64: equal, refused, or a fault.

    python tests/bench/peers/run.py WORK                       # every case
    python tests/bench/peers/run.py WORK "rows x rows" "pyg:"  # whose names have one of these, or fit a pattern
    python tests/bench/peers/run.py WORK --list

Each case has one verdict per number of ranks (0: the plain library): "equal"; "refused", with the line; "wrong", with
what differs; "crashed"; "ended", where the process hung or died; "not run", where the plain library fails. Verdicts are
kept in WORK/verdicts.jsonl: a call measures what is missing; `--again` measures all. The exit code is 1 where a case is
wrong, crashed or ended. `--write` makes distgnn/interop/tried.json, which `distgnn models` prints, of what WORK holds.
"""

import argparse
import faulthandler
import hashlib
import json
import os
import pickle
import random
import subprocess
import sys
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import torch
from cases import Case, select
from peer import Peer, difference, failure, looks_alike
from worlds import WORLDS, ids_of, plain_graph, write_parts

import distgnn as dg

HERE = Path(__file__).resolve().parent
VERDICTS = ("equal", "refused", "wrong", "crashed", "ended", "not run")
FAULTS = ("wrong", "crashed", "ended")
BATCH = 200  # cases of one mpiexec: a graph keeps a communicator to the end
FIRST_SECONDS = 900  # kernels compile while the first case runs
Verdicts = dict[str, dict[int, dict[str, Any]]]  # case -> number of ranks -> verdict, line


def main() -> int:
    """Run what is asked for and not there, and print a row per case that is not equal, and counts by kind."""
    options = _options()
    cases = select(options.names)
    if options.inside is not None:
        run_batch(options, cases)
        return 0
    if options.list:
        print(*(one.name for one in cases), sep="\n")
        return 0
    if options.again:
        (options.work / "verdicts.jsonl").unlink(missing_ok=True)
    for count in (0, *options.ranks):
        if count:
            write_parts(options.work, count)
        while left := len(_left(cases, options.work, count)):
            print(f"{count or 'plain'}: {left} cases left", file=sys.stderr, flush=True)
            _start(count)
            if len(_left(cases, options.work, count)) == left:
                raise SystemExit(f"no case ran on {count} ranks")
    found = _read(options.work)
    if options.write:
        write_tried(cases, found)
    show(cases, found, options.ranks, options.all)
    return int(any(found[one.name][count]["verdict"] in FAULTS for one in cases for count in options.ranks))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("work", type=Path, help="folder for parts and results")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--ranks", type=lambda text: [int(one) for one in text.split(",")], default=[1, 2, 3])
    parser.add_argument("--seconds", type=int, default=30, help="of one case")
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--all", action="store_true", help="rows of equal cases, too")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--inside", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.work = options.work.resolve()
    options.work.mkdir(parents=True, exist_ok=True)
    return options


def _start(count: int) -> None:
    """The cases that are left, on ranks or in the plain library, until a batch is done or a process ends."""
    from distgnn.system.launch import find_mpiexec

    launcher = [find_mpiexec() or "mpiexec", "-n", str(count)] if count else []
    command = [*launcher, sys.executable, __file__, *sys.argv[1:], "--inside", str(count)]
    subprocess.run(command, env=os.environ | {"OMP_NUM_THREADS": "1", "DISTGNN_LAUNCHED": "0"}, check=False)


def _read(work: Path) -> Verdicts:
    """The last verdict of each case and number of ranks."""
    file, found = work / "verdicts.jsonl", {}
    for line in map(json.loads, file.read_text().splitlines() if file.exists() else ()):
        found.setdefault(line["name"], {})[line["ranks"]] = line
    return found


def _left(cases: list[Case], work: Path, count: int) -> list[Case]:
    found = _read(work)
    return [one for one in cases if count not in found.get(one.name, {})]


def run_batch(options: argparse.Namespace, cases: list[Case]) -> None:
    """Some of the cases that are left, in this process or on this rank, and their verdicts."""
    warnings.simplefilter("ignore")
    torch.set_default_dtype(torch.float64)
    torch.set_num_threads(1)
    count, work, comm, graphs = options.inside, options.work, None, {}
    chosen = _left(cases, work, count)[:BATCH]
    if count:
        from mpi4py import MPI

        comm = MPI.COMM_WORLD.Dup()
        comm.barrier()  # all have read what is left
    for number, case in enumerate(chosen):
        _say(work, comm, case, "ended", "the process hung or died")  # the last line of a case counts
        faulthandler.dump_traceback_later(options.seconds if number else FIRST_SECONDS, exit=True)
        verdict, line = _agree(comm, *_verdict(case, count, work, graphs, comm))
        faulthandler.cancel_dump_traceback_later()
        if verdict != "equal":
            graphs.pop(case.world, None)
        _say(work, comm, case, verdict, line)


def _say(work: Path, comm: Any, case: Case, verdict: str, line: str) -> None:
    """A line of the file, on rank 0."""
    if comm is None or comm.rank == 0:
        found = {"name": case.name, "ranks": comm.size if comm else 0, "verdict": verdict, "line": line}
        with (work / "verdicts.jsonl").open("a") as file:
            file.write(json.dumps(found) + "\n")


def _verdict(case: Case, count: int, work: Path, graphs: dict[str, Any], comm: Any) -> tuple[str, str]:
    """The verdict of this process, and a line on it. Args: graphs: loaded; a random or failed case loads anew."""
    for seed in (torch.manual_seed, np.random.seed, random.seed):
        seed(0)
    data, parts = WORLDS[case.world](), work / f"{case.world}-{count}"
    plain, alone = (work / f"{hashlib.sha1(case.name.encode()).hexdigest()}-{one}.pickle" for one in (0, 1))
    try:
        if not count:
            graph = plain_graph(data, case.library)
        else:
            if case.random or case.world not in graphs:
                graphs[case.world] = dg.load(parts, dtype="float64", say=None)
            graph = graphs[case.world].clone()  # a case may set columns
        peer = Peer(case.library, graph, ids_of(data), count and dg, str(parts))
        arrays = peer.arrays(case.run(peer))
    except Exception as error:
        return failure(error)
    if count < 2 and (comm is None or comm.rank == 0):
        (alone if count else plain).write_bytes(pickle.dumps(arrays))
    if not count:
        return "equal", ""
    if not plain.exists():
        return "not run", "the plain library fails, too"
    if case.random and count > 1:
        if not alone.exists():
            return "wrong", "runs on several ranks and not on one"
        plain = alone
    apart = (looks_alike if case.random and count == 1 else difference)(arrays, pickle.loads(plain.read_bytes()))
    return ("wrong", apart) if apart else ("equal", "")


def _agree(comm: Any, verdict: str, line: str) -> tuple[str, str]:
    """One verdict for all ranks: the worst, and "crashed" where some ranks refuse and others go on."""
    found = [(verdict, line)] if comm is None else comm.allgather((verdict, line))
    kinds = {one for one, _ in found}
    if len(kinds) == 1:
        return found[0]
    worst = next(kind for kind in ("crashed", "wrong", "refused") if kind in kinds)
    who, text = next((rank, text) for rank, (one, text) in enumerate(found) if one == worst)
    if "refused" in kinds:
        return "crashed", f"ranks disagree ({', '.join(one for one, _ in found)}): {text}"
    return worst, f"rank {who}: {text}"


def show(cases: list[Case], results: Verdicts, ranks: list[int], everything: bool) -> None:
    """A row per case that is not equal, and counts by kind."""
    counts: dict[str, Counter] = {}
    for one in cases:
        found = {count: results[one.name][count] for count in ranks}
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


def write_tried(cases: list[Case], results: Verdicts) -> None:
    """distgnn/interop/tried.json: counts by kind, and the lines of refusals. Raises: SystemExit for a fault."""
    equal, refused, alone, lines = Counter(), Counter(), Counter(), {}
    for one in cases:
        found = results.get(one.name, {})
        verdicts = {count: entry["verdict"] for count, entry in found.items() if count}
        if "not run" in verdicts.values():
            continue
        if set(verdicts) != {1, 2, 3} or set(verdicts.values()) & set(FAULTS):
            raise SystemExit(f"{one.name}: {verdicts}: run it on 1, 2 and 3 ranks, and mend what is wrong")
        if {verdicts[2], verdicts[3]} == {"equal"}:
            equal[one.kind] += 1
            continue
        refused[one.kind] += 1  # on several ranks; on one, most of these run
        alone[one.kind] += verdicts[1] == "equal"
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
    path = HERE.parents[2] / "distgnn" / "interop" / "tried.json"
    path.write_text("{\n" + ",\n".join(tables) + "\n}\n")


if __name__ == "__main__":
    sys.exit(main())
