"""Random graph x cut x model x norm x schedule x dtype, on one rank and on P: thousands of cases.

    mpiexec -n 3 python tests/bench/fuzz/ranks.py --cases 2000 [--first 0] [--seconds 3000]

A case that differs is made smaller and printed as the call that makes it again (random_cases.py). A case
that raises ends the job: the others would wait. Its number is printed; go on behind it with --first. Exits 1 if any
case differed.
"""

import argparse
import collections
import sys
import time
import traceback
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "harness"))
import torch
from mpi4py import MPI
from random_cases import counterexample, difference, draw


def main() -> None:
    """Run the cases that the command line asks for."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--verbose", action="store_true")
    args = parser.parse_args()
    comm, began = MPI.COMM_WORLD, time.time()
    torch.set_num_threads(1)
    warnings.simplefilter("error")
    found, counts = [], collections.Counter()
    for number in range(args.first, args.first + args.cases):
        if comm.bcast(time.time() - began > args.seconds):
            break
        case = draw(number)
        if args.verbose and comm.rank == 0:
            print(number, case, flush=True)
        try:
            if difference(case, comm):
                found.append(f"{number}: {counterexample(case, comm)}")
                if comm.rank == 0:
                    print(found[-1], flush=True)
        except Exception:
            traceback.print_exc()
            print(f"rank {comm.rank} of {comm.size} raised in case {number}: {case}", flush=True)
            comm.Abort(1)
        counts[case.model, case.dtype] += 1
    if comm.rank == 0:
        for (model, dtype), count in sorted(counts.items()):
            print(f"{count:6d}  {model} {dtype}")
        seconds = time.time() - began
        print(f"{sum(counts.values())} cases on {comm.size} ranks, {len(found)} differ, {seconds:.0f} s")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
