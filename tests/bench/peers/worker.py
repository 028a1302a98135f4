"""One process of a batch: runs cases one after the other, alone with the plain library, or as a rank of mpiexec.

    python worker.py JOB.json

The job: {"ranks": 0 for the plain library, "cases": [names], "folder": where parts and results are, "seconds": limit of
a case, "log": file of rank 0's lines}. A line of the log is {"start": name}, {"name", "verdict", "line", "seconds"} or
{"end": true}. A case that hangs ends the process; the runner starts another for the cases that are left.
"""

import faulthandler
import json
import pickle
import random
import sys
import time
import traceback
import warnings
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import numpy as np
import torch
from cases import Case, load_cases
from peer import Peer, difference, looks_alike
from worlds import WORLDS, ids_of, plain_graph

import distgnn as dg  # before torch, as its users do

FIRST_SECONDS = 900  # kernels compile while the first layer runs


class Worker:
    """Graphs, and what earlier runs found."""

    def __init__(self, job: dict[str, Any]):
        self.job, self.folder = job, Path(job["folder"])
        self.data = {name: make() for name, make in WORLDS.items()}
        self.graphs: dict[str, Any] = {}
        self.expected = {} if job["ranks"] == 0 else _read(self.folder / "plain.pickle")
        self.one = _read(self.folder / "one.pickle") if job["ranks"] > 1 else {}
        self.comm: Any = None
        self.rank = 0
        if job["ranks"]:
            from mpi4py import MPI

            self.comm = MPI.COMM_WORLD.Dup()
            self.rank = self.comm.rank
        self.log = open(job["log"], "a") if self.rank == 0 else None
        self.kept: dict[str, Any] = {}

    def say(self, line: dict[str, Any]) -> None:
        """A line of the log, on rank 0."""
        if self.log:
            self.log.write(json.dumps(line) + "\n")
            self.log.flush()

    def graph(self, case: Case) -> Any:
        """The case's graph; one that a random case or a failed one has used is loaded anew."""
        if not self.job["ranks"]:
            return plain_graph(self.data[case.world], case.library)
        if case.random or case.world not in self.graphs:
            self.graphs[case.world] = dg.load(
                self.folder / f"{case.world}-{self.job['ranks']}", dtype="float64", say=None
            )
        return self.graphs[case.world].clone()  # a case may set columns

    def run(self, case: Case) -> tuple[str, str]:
        """The verdict of this process, and a line on it."""
        for seed in (torch.manual_seed, np.random.seed, random.seed):
            seed(0)
        try:
            folder = str(self.folder / f"{case.world}-{self.job['ranks']}")
            peer = Peer(case.library, self.graph(case), ids_of(self.data[case.world]), self.job["ranks"] and dg, folder)
            arrays = peer.arrays(case.run(peer))
        except BaseException as error:
            return failure(error)
        self.kept[case.name] = arrays
        if not self.job["ranks"]:
            return "equal", ""
        if case.name not in self.expected:
            return "not run", "the plain library fails, too"
        compared = difference
        right = self.expected[case.name]
        if case.random:
            compared, right = (looks_alike, right) if self.job["ranks"] == 1 else (difference, self.one.get(case.name))
            if right is None:
                return "wrong", "runs on several ranks and not on one"
        apart = compared(arrays, right)
        return ("wrong", apart) if apart else ("equal", "")

    def agree(self, verdict: str, line: str) -> tuple[str, str]:
        """One verdict for all ranks: the worst, and "crashed" where some ranks refuse and others go on."""
        if self.comm is None:
            return verdict, line
        found = self.comm.allgather((verdict, line))
        kinds = {one for one, _ in found}
        if len(kinds) == 1:
            return found[0]
        worst = next(kind for kind in ("crashed", "wrong", "refused") if kind in kinds)
        who, text = next((rank, text) for rank, (one, text) in enumerate(found) if one == worst)
        if "refused" in kinds:
            return "crashed", f"ranks disagree ({', '.join(one for one, _ in found)}): {text}"
        return worst, f"rank {who}: {text}"

    def run_all(self) -> None:
        """Every case of the job."""
        cases = load_cases()
        limit = open(self.folder / f"hung-{self.rank}.txt", "w")
        for number, name in enumerate(self.job["cases"]):
            self.say({"start": name})
            started = time.perf_counter()
            faulthandler.dump_traceback_later(self.job["seconds"] if number else FIRST_SECONDS, exit=True, file=limit)
            verdict, line = self.agree(*self.run(cases[name]))
            faulthandler.cancel_dump_traceback_later()
            if verdict != "equal":
                self.graphs.pop(cases[name].world, None)
            seconds = round(time.perf_counter() - started, 3)
            self.say({"name": name, "verdict": verdict, "line": line, "seconds": seconds})
        self.write()
        self.say({"end": True})

    def write(self) -> None:
        """What the plain library found; of one rank what random cases found."""
        target = {0: "plain.pickle", 1: "one.pickle"}.get(self.job["ranks"])
        if target and self.rank == 0:
            path = self.folder / target
            path.write_bytes(pickle.dumps((_read(path) if path.exists() else {}) | self.kept))


def _read(path: Path) -> dict[str, Any]:
    return pickle.loads(path.read_bytes()) if path.exists() else {}


def failure(error: BaseException) -> tuple[str, str]:
    """ "refused" for an error that this program raised in one line, else "crashed"."""
    text = str(error)
    frames = traceback.extract_tb(error.__traceback__)
    last = frames[-1]
    deliberate = isinstance(error, dg.DistGNNError) or (
        isinstance(error, (ValueError, IndexError, NotImplementedError))
        and Path(last.filename).is_relative_to(Path(dg.__file__).parent)
        and (last.line or "").startswith("raise")
    )
    if deliberate and "\n" not in text.strip():
        return "refused", text.strip()
    where = f"{Path(last.filename).name}:{last.lineno}"
    return "crashed", f"{type(error).__name__}: {' '.join(text.split())[:300]} ({where})"


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    torch.set_default_dtype(torch.float64)
    torch.set_num_threads(1)
    Worker(json.loads(Path(sys.argv[1]).read_text())).run_all()
