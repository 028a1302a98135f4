"""Rows cut per second, by method and number of threads, and whether the cut stays the same.

    python tests/bench/partition/speed.py rmat:scale=20,edge_factor=16 --parts 32 --threads 1,2 --methods cmr,libra

Seconds are wall-clock of cutting alone (owners included), in this process, after a small cut that compiles everything.
"""

import argparse
import hashlib
import resource
import time

from distgnn import kernels
from distgnn.datasets import load_graph
from distgnn.partition import PartitionBook, cut_edges


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("graph")
    parser.add_argument("--methods", default="cmr")
    parser.add_argument("--parts", type=int, default=32)
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--direction", default="both")
    parser.add_argument("--data-root")
    args = parser.parse_args()
    small = load_graph("rmat:scale=10,edge_factor=8,seed=1").edge_list(args.direction)
    for method in args.methods.split(","):
        cut_edges(small, 4, method)
    edges = load_graph(args.graph, args.data_root).edge_list(args.direction)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    size = f"{edges.num_edges:,} edges, {edges.num_nodes:,} vertices"
    print(f"{args.graph}: {size}, {args.parts} parts; {peak:.1f} GB peak of loading", flush=True)
    for method in args.methods.split(","):
        measure(edges, method, args.parts, [int(count) for count in args.threads.split(",")])


def measure(edges, method, num_parts, thread_counts):
    digests, first = set(), None
    for threads in thread_counts:
        kernels.set_num_threads(threads)
        began = time.perf_counter()
        cut = cut_edges(edges, num_parts, method)
        seconds = time.perf_counter() - began
        first = first or seconds
        digests.add(hashlib.sha256(cut.edge_part.tobytes() + cut.owner.tobytes()).hexdigest())
        rate = edges.num_edges / seconds / 1e6
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
        speed = f"{seconds:7.1f} s {rate:6.2f} M edges/s, {first / seconds:.2f} x"
        print(f"{method:10} {threads} threads {speed}; {peak:.1f} GB peak", flush=True)
    book = PartitionBook(edges, cut)
    balances = f"arcs {book.edge_balance:.3f}, owned {book.owned_balance:.3f}, local rows {book.copies_balance:.3f}"
    same = "same bytes" if len(digests) == 1 else "DIFFERENT BYTES"
    print(f"{method:10} copies {book.replication_factor:.3f}; {balances}; {same}", flush=True)


if __name__ == "__main__":
    main()
