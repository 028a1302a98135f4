"""Measure the kernels graph by graph: `python tests/bench/kernels/run.py rmat --widths 16 100 256 --out rmat.json`."""

import argparse
import json
from pathlib import Path

from rich.console import Console

from distgnn import kernels
from distgnn.bench.kernels import GRAPHS, OPERATIONS, WIDTHS, machine, run, table


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("graphs", nargs="*", default=list(GRAPHS))
    parser.add_argument("--widths", type=int, nargs="+", default=list(WIDTHS))
    parser.add_argument("--operations", nargs="+", default=list(OPERATIONS))
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--order", default="cluster")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--data-root")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    if options.threads:
        kernels.set_num_threads(options.threads)
    rows = run(
        options.graphs, options.widths, options.operations, options.repeats, options.order, options.data_root, print
    )
    Console(width=200).print(table(rows))
    if options.out:
        options.out.write_text(json.dumps({"machine": machine(), "rows": rows}, indent=1))


if __name__ == "__main__":
    main()
