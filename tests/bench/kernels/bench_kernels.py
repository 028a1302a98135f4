"""Our row kernels beside DGL 1.1.3, torch.sparse and torch_geometric, in turn in one run.

    python tests/bench/kernels/bench_kernels.py                    # all graphs, widths and operations; hours
    python tests/bench/kernels/bench_kernels.py --graphs dense --widths 100 --operations sum --out rows.json

Each line of the table is one operation on one graph at one width. What is compared runs in turn, repeat by repeat;
medians are reported, and the fastest call of each beside them (on a machine with other work they say more). `of copy`
is the rate at which rows are gathered (E · D · 4 bytes / seconds; 5 passes over the rows for the activation) over the
copy bandwidth measured in the same run (read + write); it exceeds 1 where caches help. `of gather` is the share of the
gather bound: the time to read the same rows in the same order and write nothing. Not run by pytest.
"""

import argparse
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
from kernel_cases import GRAPHS, WIDTHS, interleaved, make_case
from kernel_measures import MEASURE, one_thread

from distgnn import kernels
from distgnn.cli.display import print_columns
from distgnn.config import num_threads
from distgnn.graph.tuning import describe_tuning, machine_tuning
from distgnn.kernels.runtime.tuning import hold_tuning
from distgnn.system.processor import processor

OPERATIONS = tuple(MEASURE)
RATIOS = {  # column of the summary: (operation, theirs, ours, target of the geometric mean)
    "sum, same order": ("sum", "dgl", "f32", 1.8),
    "sum transposed": ("sum", "dgl_transposed", "f32_transposed", 1.8),
    "sum of bfloat16 rows": ("sum", "dgl", "bf16", 3.0),
    "sum against torch.sparse": ("sum", "torch_sparse", "f32", None),
    "sum against torch_geometric": ("sum", "torch_geometric", "f32", None),
    "weighted sum": ("weighted", "dgl", "f32", None),
    "max with winners": ("max", "dgl", "f32", 3.0),
    "max without winners": ("max", "dgl", "f32_without_winners", None),
    "attention, forward and backward": ("attention", "dgl", "f32", 3.0),
    "bias, ReLU, dropout, both ways": ("activation", "torch", "f32", 4.0),
    "bias, ReLU, dropout, in place": ("activation", "torch", "f32_in_place", 4.0),
}


def run(
    graphs: Any = tuple(GRAPHS),
    widths: Any = WIDTHS,
    operations: Any = OPERATIONS,
    repeats: int = 7,
    data_root: str | None = None,
    report: Any = None,
) -> Any:
    """Time operations on graphs.

    Args: names from GRAPHS, WIDTHS and OPERATIONS; repeats ≥ 2, of which the first is not counted; report: called with
        each row once it is measured.
    Returns: list of dict: graph, operation, width, threads, seconds by column, ratios, rates.
    """
    import torch

    torch.set_num_threads(kernels.get_num_threads())
    kernels.return_large_blocks()
    copy = copy_seconds()
    rows = []
    for name in graphs:
        case = make_case(name, data_root)
        for width in widths:
            for operation in operations:
                times = MEASURE[operation](case, width, repeats)
                if times:
                    rows.append(_finish(times, case, operation, width, copy))
                    if report:
                        report(rows[-1])
    return rows


def machine() -> Any:
    """What the numbers belong to."""
    import torch

    from distgnn.system.other_libraries import import_dgl

    versions = {"numpy": np.__version__, "torch": torch.__version__, "dgl": import_dgl().__version__}
    return {
        "cpu": processor(),
        "cores": os.cpu_count(),
        "threads": kernels.get_num_threads(),
        "tuning": describe_tuning(),
        **versions,
    }


COPY_BYTES = 1 << 28


def copy_seconds() -> Any:
    """Seconds to copy COPY_BYTES from memory to memory with the kernel that packs rows: on all threads and on one."""
    source, rows = np.ones((COPY_BYTES // 4096, 1024), np.float32), np.arange(COPY_BYTES // 4096)
    target = np.zeros_like(source)

    def call() -> None:
        kernels.pack_rows(source, rows, target)

    times = interleaved({"all": call, "one": one_thread(call)}, 8)
    return {name: min(values) for name, values in times.items()}


def _finish(times: Any, case: Any, operation: Any, width: Any, copy: Any) -> Any:
    """Medians, fastest, ratios to DGL (or torch) and rates."""
    seconds = {name: float(np.median(values)) for name, values in times.items()}
    base = "torch" if operation == "activation" else "dgl"
    row_bytes = width * 4
    moved = len(case.stored[1]) * row_bytes if operation != "activation" else case.num_nodes * row_bytes * 5
    return {
        "graph": case.name,
        "nodes": case.num_nodes,
        "arcs": len(case.stored[1]),
        "operation": operation,
        "width": width,
        "threads": kernels.get_num_threads(),
        "seconds": seconds,
        "fastest": {name: min(values) for name, values in times.items()},
        "ratio": seconds[base] / seconds["f32"],
        "gigabytes_per_second": moved / seconds["f32"] / 1e9,
        "copy_gigabytes_per_second": 2 * COPY_BYTES / copy["all"] / 1e9,
        "share_of_copy": moved / seconds["f32"] / (2 * COPY_BYTES / copy["all"]),
        "share_of_gather": seconds.get("gather", np.nan) / seconds["f32"],
        "scaling": seconds.get("f32_one_thread", np.nan) / seconds["f32"],
        "copy_scaling": copy["one"] / copy["all"],
    }


def summarise(rows: Any) -> Any:
    """Geometric mean and range of each ratio over all rows that have it.

    Returns: list of (name, rows, geometric mean of medians, of fastest calls, smallest, where, largest, target).
    """
    found = []
    for name, (operation, theirs, ours, target) in RATIOS.items():
        chosen = [r for r in rows if r["operation"] == operation and {theirs, ours} <= set(r["seconds"])]
        if not chosen:
            continue
        medians, fastest = (np.array([r[key][theirs] / r[key][ours] for r in chosen]) for key in ("seconds", "fastest"))
        least = chosen[int(medians.argmin())]
        means = [float(np.exp(np.log(values).mean())) for values in (medians, fastest)]
        where = f"{least['graph']} {least['width']}"
        found.append((name, len(chosen), *means, float(medians.min()), where, float(medians.max()), target))
    return found


def show(rows: Any) -> None:
    """Print the rows, and `summarise` below."""
    columns = ["graph", "operation", "D", "DGL / torch s", "ours s", "ratio", "GB/s", "of copy", "of gather", "threads"]
    cells = []
    for row in rows:
        seconds = row["seconds"]
        times = [f"{seconds.get('dgl', seconds.get('torch')):.4f}", f"{seconds['f32']:.4f}", f"{row['ratio']:.2f}"]
        gather = f"{row['share_of_gather']:.0%}" if row["share_of_gather"] == row["share_of_gather"] else ""
        rates = [f"{row['gigabytes_per_second']:.1f}", f"{row['share_of_copy']:.0%}", gather, f"{row['scaling']:.2f}"]
        others = {n: s for n, s in seconds.items() if n not in ("dgl", "torch", "f32", "gather", "f32_one_thread")}
        named = ", ".join(f"{n} {s:.4f}" for n, s in others.items())
        cells.append([row["graph"], row["operation"], str(row["width"]), *times, *rates, named])
    print_columns("Seconds of a call, medians", [*columns, "other columns"], cells)
    columns = ["ratio to DGL or torch", "rows", "geometric mean", "of fastest", "smallest", "at", "largest", "target"]
    cells = [
        [name, str(count), f"{mean:.2f}", f"{fastest:.2f}", f"{least:.2f}", where, f"{most:.2f}", f"{target or ''}"]
        for name, count, mean, fastest, least, where, most, target in summarise(rows)
    ]
    print_columns("Ratios", columns, cells)


def main() -> None:
    """Measure what is asked for; rows that the JSON file has already are kept."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--graphs", nargs="+", default=list(GRAPHS), choices=list(GRAPHS))
    parser.add_argument("--widths", nargs="+", type=int, default=list(WIDTHS))
    parser.add_argument("--operations", nargs="+", default=list(OPERATIONS), choices=OPERATIONS)
    parser.add_argument("--repeats", type=int, default=7, help="turns; the first is not counted")
    parser.add_argument("--data-root", help="folder of named data sets (default: DISTGNN_DATA or ./data)")
    parser.add_argument("--threads", type=int, help="default: all cores")
    parser.add_argument("--out", type=Path, help="JSON file, written after each row")
    options = parser.parse_args()
    kernels.set_num_threads(options.threads or num_threads())
    hold_tuning(machine_tuning(narrow=True))
    known = json.loads(options.out.read_text())["rows"] if options.out and options.out.exists() else []
    rows = {(row["graph"], row["operation"], row["width"]): row for row in known}

    def keep(row: Any) -> None:
        print(row, flush=True)
        rows[row["graph"], row["operation"], row["width"]] = row
        if options.out:
            options.out.write_text(json.dumps({"machine": machine(), "rows": list(rows.values())}, indent=1))

    asked = options.graphs, options.widths, options.operations, options.repeats
    run(*asked, options.data_root, keep)
    show(rows.values())


if __name__ == "__main__":
    main()
