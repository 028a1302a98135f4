"""Cut real graphs with several methods and print one line each: copies, rows, balances, seconds.

    python tests/bench/partition/compare_methods.py ogb/ogbn_arxiv,dblp-2010 --methods libra,cmr --parts 8,32 \
        --direction both --data-root DATA

`METHOD+refine`: with `--refine`; `METHOD+fast`, `METHOD+best`: with `--effort`. Edges': copies by edges alone, before
owners, which may need more. Local: rows of a part, copies included; top rank: rows that the rank exchanges; both of the
largest over the mean.

`--linked 12`: of twelve copies of each graph, one end of every fiftieth edge being the same vertex in another copy: a
large graph with the structure of a real one, vertices in random order.

Seconds are wall-clock of cutting alone, in this process; the first line of a method includes compilation.
"""

import argparse
import time

import numpy as np

from distgnn.config.cut import EFFORTS
from distgnn.datasets import load_graph
from distgnn.datasets.edge_list import EdgeList
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
    parser.add_argument("--linked", type=int, default=1, help="so many copies of each graph, linked")
    args = parser.parse_args()
    print(f"{get_num_threads()} threads, direction {args.direction}, seed {args.seed}")
    loads = "arcs  owned  local  top rank"
    print(f"graph                method          parts edges'  copies  rows/n   {loads}  seconds  M edges/s")
    for name in args.graphs.split(","):
        edges = load_graph(name.replace(";", ","), args.data_root).edge_list(args.direction)
        if args.linked > 1:
            edges = linked(edges, args.linked)
            print(f"{args.linked} linked copies of {name}: {edges.num_nodes:,} vertices, {edges.num_edges:,} edges")
        for num_parts in map(int, args.parts.split(",")):
            for method in args.methods.split(","):
                print(measure(name, edges, num_parts, method, args.seed), flush=True)


def linked(edges, times, share=0.02, seed=0):
    """An EdgeList of so many copies of a graph."""
    rng, num_nodes = np.random.default_rng(seed), edges.num_nodes * times
    firsts = edges.num_nodes * np.arange(times, dtype=np.int64)[:, None]
    src, dst = ((firsts + ends).ravel() for ends in (edges.src, edges.dst))
    leads_away = rng.random(len(src)) < share
    dst[leads_away] += edges.num_nodes * rng.integers(1, times, np.count_nonzero(leads_away))
    ends = np.sort(np.stack([src, dst % num_nodes]), axis=0)
    src, dst = np.divmod(np.unique(ends[0] * num_nodes + ends[1]), num_nodes)
    order, other = rng.permutation(num_nodes).astype(np.int32), src != dst
    return EdgeList(num_nodes, order[src[other]], order[dst[other]], edges.two_way, direction=edges.direction)


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
