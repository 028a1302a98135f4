"""How evenly the chunks of a kernel's rows keep many threads busy: largest over mean work, from a part's real arcs.

    python tests/bench/scale/thread_balance.py PARTS [--part 0] [--threads 28,56] [--width 256] [--out balance.json]

Chunks are cut by the kernels' own functions, for so many threads; nothing is timed, so two cores will do. A free thread
takes the next chunk: `balance` is the longest thread's work over the mean when chunks are handed out so, and `chunk`
the largest chunk over a thread's share (above 1: one chunk alone holds up the rest). Work of a row: its arcs and 1.

| kernels | chunks | blocks of arcs |
|---|---|---|
| sum, max and min, attention (scores, softmax, sum), on arcs | edge_chunks: equal arcs and rows | each |
| sum by blocks of sources, where rows are dense | edge_chunks of each block | owned_owned |
| sum of the eight pieces between which MPI makes progress | edge_chunks of each piece | owned_owned |
| transposing, in which every thread reads all arcs (counted) and places its own | own_ranges: equal arcs | each |
| products, norms, dropout, packing | even_chunks: equal rows | owned rows |
"""

import argparse
import heapq
import json
from itertools import pairwise
from pathlib import Path

import numpy as np

from distgnn import kernels
from distgnn.kernels.runtime.threads import EdgeChunks, edge_chunks, even_chunks, own_ranges
from distgnn.ops.aggregation.aggregator import Arcs
from distgnn.partition import load_part


def main() -> None:
    """A Markdown row for each kernel's chunks, number of threads and block of arcs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts")
    parser.add_argument("--part", type=int, default=0)
    parser.add_argument("--threads", default="28,56")
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    rows = []
    print("| kernels | arcs of | work | threads | chunks | largest chunk / share | longest thread / mean |")
    print("|---|---|---|---|---|---|---|")
    local = load_part(options.parts, options.part)
    for count in map(int, options.threads.split(",")):
        kernels.set_num_threads(count)
        arcs = Arcs.of(local, kernels.Tuning())
        for name, block, lists in work_of(arcs, options.width):
            rows.append({"kernels": name, "arcs_of": block, "threads": count} | balance(lists, count))
            print(line(rows[-1]), flush=True)
    if options.out:
        options.out.write_text(json.dumps(rows, indent=1))


def work_of(arcs: Arcs, width: int):
    """(kernels, block, work of each chunk of each call): the calls of one aggregation come one after the other."""
    blocks = ("owned_owned", "owned_halo", "halo_owned", "halo_halo")
    for block in blocks:
        indptr = np.asarray(getattr(arcs, block).indptr)
        if indptr[-1] > indptr[0]:
            yield "sum, extremes, attention, on arcs", block, [by_rows(indptr, edge_chunks(indptr, width))]
            placed = by_rows(indptr, own_ranges(indptr))
            yield "transposing", block, [placed + int(indptr[-1] - indptr[0])]
    owned = arcs.owned_owned
    pieces = [np.asarray(owned.indptr)[piece.start : piece.stop + 1] for piece in arcs.pieces]
    yield "sum, in pieces", "owned_owned", [by_rows(one, edge_chunks(one, width)) for one in pieces]
    num_rows = len(owned.indptr) - 1
    size = kernels.block_rows(num_rows, num_rows, owned.num_arcs, 4 * width)
    if size:
        blocked = kernels.block_csr(owned.indptr, owned.indices, num_rows, size)
        offsets = [blocked.block(number, 0, num_rows) for number in range(blocked.num_blocks)]
        yield "sum by blocks of sources", "owned_owned", [by_rows(one, edge_chunks(one, width)) for one in offsets]
    yield "products, norms, dropout, packing", "rows", [np.diff(even_chunks(num_rows, width))]


def by_rows(indptr: np.ndarray, bounds: list[int]) -> np.ndarray:
    """Arcs and rows of each chunk, as they are handed out."""
    work = np.array([indptr[last] - indptr[first] + last - first for first, last in pairwise(bounds)])
    return work[list(bounds.order)] if isinstance(bounds, EdgeChunks) else work


def balance(calls: list[np.ndarray], threads: int) -> dict:
    """Of calls one after the other: work is what the longest thread does in each, over what an equal share would be."""
    work = float(sum(call.sum() for call in calls))
    longest = sum(handed_out(call, threads) for call in calls)
    largest = max(float(call.max()) for call in calls)
    shares = work / threads
    return {
        "num_chunks": sum(map(len, calls)),
        "work": work,
        "largest_chunk": largest / max(max(float(call.sum()) for call in calls) / threads, 1.0),
        "balance": longest / shares if shares else 1.0,
    }


def handed_out(chunks: np.ndarray, threads: int) -> float:
    """When the last thread ends, if whoever is free takes the next chunk."""
    free = [0.0] * threads
    for work in chunks:
        heapq.heapreplace(free, free[0] + float(work))
    return max(free)


def line(row: dict) -> str:
    """A Markdown row."""
    cells = [row["kernels"], row["arcs_of"], f"{row['work']:,.0f}", row["threads"], row["num_chunks"]]
    return "| " + " | ".join(map(str, [*cells, f"{row['largest_chunk']:.3f}", f"{row['balance']:.3f}"])) + " |"


if __name__ == "__main__":
    main()
