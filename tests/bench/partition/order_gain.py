"""What the order of rows inside a part (by cluster) brings to aggregation: spmm with it and with rows shuffled.

    python tests/bench/partition/order_gain.py parts/ --width 128 --repeats 7

Takes the owned rows of part 0 (their arcs among each other). Prints the median seconds of each and their ratio.
"""

import argparse
import time

import numpy as np

from distgnn import kernels
from distgnn.partition import load_part


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("parts")
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    kernels.set_num_threads(args.threads)
    block = load_part(args.parts, 0, check=False).blocks["owned_owned"]
    indptr, indices = np.array(block.indptr), np.array(block.indices)
    rng = np.random.default_rng(0)
    number = rng.permutation(len(indptr) - 1).astype(np.int32)
    feats = rng.random((len(number), args.width), dtype=np.float32)
    forms = {"by cluster": (indptr, indices), "shuffled": renumbered(indptr, indices, number)}
    seconds = {name: [] for name in forms}
    for turn in range(args.repeats + 1):
        for name, (starts, columns) in forms.items():
            began = time.perf_counter()
            kernels.spmm(starts, columns, feats)
            if turn:
                seconds[name].append(time.perf_counter() - began)
    medians = {name: float(np.median(values)) for name, values in seconds.items()}
    print(f"{len(number):,} rows, {len(indices):,} arcs, width {args.width}, {args.threads} threads: ", end="")
    print(", ".join(f"{name} {1000 * value:.1f} ms" for name, value in medians.items()), end="")
    print(f"; {medians['shuffled'] / medians['by cluster']:.2f} x")


def renumbered(indptr, indices, number):
    """The same matrix under other numbers of its rows and columns; columns ascending in a row, as in a part."""
    rows = np.repeat(np.arange(len(number)), np.diff(indptr))
    keys = np.sort(number[rows].astype(np.int64) << 32 | number[indices])
    sizes = np.bincount(keys >> 32, minlength=len(number))
    return np.concatenate([[0], np.cumsum(sizes)]), (keys & 0xFFFFFFFF).astype(np.int32)


if __name__ == "__main__":
    main()
