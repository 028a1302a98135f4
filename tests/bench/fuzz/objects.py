"""Random objects of DGL, PyG, NetworkX, scipy, pandas, numpy and torch, as many as asked for.

    python tests/bench/fuzz/objects.py --cases 20000 [--first 0] [--only pyg]

Each becomes the graph that its library shows, with every column that is not taken named, or is refused in one line
(fuzz_objects.py). Prints, by kind, how many were taken and refused, and every finding. Exits 1 if there
was one.
"""

import argparse
import collections
import sys
import time

from fuzz_objects import KINDS, try_one


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--cases", type=int, default=20_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--only", choices=KINDS, help="one kind of object")
    args = parser.parse_args()
    began, counts, findings = time.time(), collections.Counter(), []
    kinds = (args.only,) if args.only else ()
    for number in range(args.first, args.first + args.cases):
        kind, outcome = try_one(number, kinds)
        counts[kind, outcome.partition(":")[0]] += 1
        if outcome.startswith("finding"):
            findings.append(outcome)
            print(kind, outcome[:400], flush=True)
    for kind in kinds or KINDS:
        print(f"{kind:14} taken {counts[kind, 'taken']:6d}  refused {counts[kind, 'refused']:6d}")
    print(f"{args.cases} cases, {len(findings)} findings, {time.time() - began:.0f} s")
    sys.exit(bool(findings))


if __name__ == "__main__":
    main()
