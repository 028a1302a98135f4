"""Balances of `cmr` over numbers of parts and orders of the input: one line for each graph, the worst of each balance.

    python tests/bench/partition/balances.py ogb/ogbn_arxiv,dblp-2010,web-notredame,ego-twitter --data-root DATA

Orders: rows as stored, sorted by source, shuffled (seed 1). Cuts that break a limit (arcs 1.03, owned 1.05, copies
1.05, a part without arcs) are printed by themselves.
"""

import argparse

import numpy as np

from distgnn.datasets import load_graph
from distgnn.datasets.edge_list import EdgeList
from distgnn.partition import PartitionBook, cut_edges

LIMITS = (1.03, 1.05, 1.05)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("graphs", help="sources, separated by commas")
    parser.add_argument("--parts", default="2,4,8,32,64,128")
    parser.add_argument("--direction", default="both")
    parser.add_argument("--refine", help="refine this method's cut in place of cmr")
    parser.add_argument("--update", default="owners")
    parser.add_argument("--data-root")
    args = parser.parse_args()
    for name in args.graphs.split(","):
        edges = load_graph(name, args.data_root).edge_list(args.direction)
        runs = [measure(edges, int(k), order, args) for k in args.parts.split(",") for order in ORDERS]
        worst = np.max([balances for *_, balances, _ in runs], axis=0)
        empty = sum(parts for *_, parts in runs)
        print(f"{name}: {len(runs)} cuts, worst {text(worst)}, {empty} empty parts", flush=True)
        for k, order, balances, parts in runs:
            if parts or (balances > LIMITS).any():
                print(f"    {k} parts, {order}: {text(balances)}, {parts} empty parts", flush=True)


def text(balances):
    return "arcs {:.3f}, owned {:.3f}, copies {:.3f}".format(*balances)


def measure(edges, num_parts, order, args):
    rows = ORDERS[order](edges)
    given = EdgeList(edges.num_nodes, edges.src[rows], edges.dst[rows], edges.two_way)
    cut = cut_edges(given, num_parts, args.refine or "cmr", refine=True, update=args.update)
    book = PartitionBook(given, cut)
    balances = np.array([book.edge_balance, book.owned_balance, book.copies_balance])
    return num_parts, order, balances, int(np.count_nonzero(book.num_arcs == 0))


ORDERS = {
    "stored": lambda edges: np.arange(edges.num_edges),
    "by source": lambda edges: np.lexsort((edges.dst, edges.src)),
    "shuffled": lambda edges: np.random.default_rng(1).permutation(edges.num_edges),
}

if __name__ == "__main__":
    main()
