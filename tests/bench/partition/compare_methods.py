"""Cut real graphs with several methods and print one line each: copies, rows, balances, seconds.

    python tests/bench/partition/compare_methods.py ogb/ogbn_arxiv,dblp-2010 --methods libra,cmr --parts 8,32 \
        --direction both --data-root DATA

`METHOD+refine`: with `--refine`; `METHOD+fast`, `METHOD+best`: with `--effort`. Edges': copies by edges alone, before
owners, which may need more. Local: rows of a part, copies included; top rank: rows that the rank exchanges; both of the
largest over the mean.

Seconds are wall-clock of cutting alone, in this process; the first line of a method includes compilation.
"""

import argparse
import time

import numpy as np

from distgnn.config.cut import EFFORTS
from distgnn.datasets import load_graph
from distgnn.kernels import get_num_threads
from distgnn.partition import PartitionBook, cut_edges


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("graphs", help="sources, separated by commas; a generated graph's own commas as semicolons")
    parser.add_argument("--methods", default="libra,cmr")
    parser.add_argument("--parts", default="8,32")
    parser.add_argument("--direction", default="both")
    parser.add_argument("--data-root")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    print(f"{get_num_threads()} threads, direction {args.direction}, seed {args.seed}")
    loads = "arcs  owned  local  top rank"
    print(f"graph                method          parts edges'  copies  rows/n   {loads}  seconds  M edges/s")
    for name in args.graphs.split(","):
        edges = load_graph(name.replace(";", ","), args.data_root).edge_list(args.direction)
        for num_parts in map(int, args.parts.split(",")):
            for method in args.methods.split(","):
                print(measure(name, edges, num_parts, method, args.seed), flush=True)


def measure(name, edges, num_parts, method, seed):
    began = time.perf_counter()
    name_of_method, *more = method.split("+")
    effort = next((each for each in more if each in EFFORTS), "normal")
    cut = cut_edges(edges, num_parts, name_of_method, seed=seed, refine="refine" in more, effort=effort)
    seconds = time.perf_counter() - began
    book = PartitionBook(edges, cut)
    active = np.count_nonzero(edges.in_degrees() + edges.out_degrees())
    balances = f"{book.edge_balance:6.3f} {book.owned_balance:6.3f} {book.copies_balance:6.3f}"
    top = book.max_rank_rows * num_parts / max(2 * book.exchange_rows, 1)
    ends = np.concatenate([edges.src, edges.dst]).astype(np.int64) * num_parts
    of_edges = len(np.unique(ends + np.tile(cut.edge_part, 2))) / active
    rate = len(edges.src) / seconds / 1e6
    copies = f"{of_edges:6.3f} {book.replication_factor:7.3f} {book.exchange_rows / active:7.3f}"
    return f"{name[:20]:20} {method:15} {num_parts:5} {copies} {balances} {top:9.3f} {seconds:8.1f} {rate:10.2f}"


if __name__ == "__main__":
    main()
