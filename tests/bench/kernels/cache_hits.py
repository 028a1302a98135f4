"""Share of gathered rows that a cache of a given size would hold: an exact simulation of least recently used rows.

    python tests/bench/kernels/cache_hits.py --graphs rmat,arxiv --cache graphs/

For each graph of bench_kernels.py, over the arcs of one of two threads: what
1 MiB (a core's level 2 here) and 16 MiB (half of level 3) would serve. Not run by pytest.
"""

import argparse

import numpy as np
from kernel_cases import GRAPHS, make_case
from numba import njit

CACHES = (1 << 20, 1 << 24)


@njit
def hits(indices, num_rows, capacity):
    """Number of `indices` whose row is among the `capacity` most recently used ones: a doubly linked list of rows."""
    older, newer, inside = np.full(num_rows, -1), np.full(num_rows, -1), np.zeros(num_rows, np.bool_)
    newest = oldest = -1
    size = found = 0
    for row in indices:
        if row == newest:
            found += 1
            continue
        if inside[row]:
            found += 1
            after, before = newer[row], older[row]
            older[after] = before
            if before >= 0:
                newer[before] = after
            else:
                oldest = after
        elif size == capacity:
            inside[oldest] = False
            oldest = newer[oldest]
            older[oldest] = -1
        else:
            size += 1
        inside[row] = True
        older[row], newer[row] = newest, -1
        if newest >= 0:
            newer[newest] = row
        else:
            oldest = row
        newest = row
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--graphs", default=",".join(GRAPHS))
    parser.add_argument("--widths", default="16,100,256")
    parser.add_argument("--cache", help="folder that keeps the generated graphs")
    options = parser.parse_args()
    for name in options.graphs.split(","):
        case = make_case(name, cache=options.cache)
        for width in map(int, options.widths.split(",")):
            arcs = case.stored[1][: len(case.stored[1]) // 2]
            shares = [hits(arcs, case.num_nodes, max(2, size // (4 * width))) / len(arcs) for size in CACHES]
            print(f"{name}, {width} columns: " + ", ".join(f"{share:.0%}" for share in shares))


if __name__ == "__main__":
    main()
