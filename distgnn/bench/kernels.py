"""`distgnn bench-kernels`: our row kernels beside DGL 1.1.3, torch.sparse and torch_geometric, in turn in one run.

Each line of the table is one operation on one graph at one width. What is compared runs in turn, repeat by repeat;
medians are reported. DGL is timed on the stored vertex order and on ours. `share of copy` is the rate at which rows
are gathered (E · D · bytes / seconds) over the measured copy bandwidth (read + write); it exceeds 1 where caches help.
`gather` is the bound: the same rows read in the same order into 1,024 sums, so that next to nothing is written.
"""

import os
import platform

import numpy as np

from distgnn import kernels
from distgnn.bench.kernel_cases import GRAPHS, MEASURE, WIDTHS, interleaved, make_case
from distgnn.errors import InputError

OPERATIONS = tuple(MEASURE)


def run(
    graphs=tuple(GRAPHS), widths=WIDTHS, operations=OPERATIONS, repeats=7, order="cluster", data_root=None, report=None
):
    """Time operations on graphs.

    Args: names from GRAPHS, WIDTHS and OPERATIONS; repeats ≥ 2, of which the first is not counted; order: of
        `kernels.vertex_order`; report: called with each row as soon as it is measured.
    Returns: list of dict: graph, operation, width, threads, seconds by column, ratios, rates.
    """
    for name, known in ((graphs, GRAPHS), (operations, OPERATIONS)):
        unknown = [n for n in name if n not in known]
        if unknown:
            raise InputError(f"unknown {unknown[0]!r}: choose from {', '.join(known)}")
    import torch

    torch.set_num_threads(kernels.get_num_threads())
    kernels.keep_freed_memory()
    copy = copy_bandwidth()
    rows = []
    for name in graphs:
        case = make_case(name, order, data_root)
        for width in widths:
            for operation in operations:
                row = MEASURE[operation](case, width, repeats)
                if row:
                    rows.append(_finish(row, case, operation, width, copy))
                    if report:
                        report(rows[-1])
    return rows


def machine():
    """What the numbers belong to."""
    return {"cpu": _cpu_name(), "cores": os.cpu_count(), "threads": kernels.get_num_threads(), "numpy": np.__version__}


def _cpu_name():
    try:
        with open("/proc/cpuinfo") as lines:
            return next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def copy_bandwidth(num_bytes=1 << 28):
    """Bytes read and written per second by torch's copy of a large tensor, on all threads."""
    import torch

    source, target = torch.ones(num_bytes // 4), torch.empty(num_bytes // 4)
    seconds = interleaved({"copy": lambda: target.copy_(source)}, 8)["copy"]
    return 2 * num_bytes / seconds


def _finish(seconds, case, operation, width, copy):
    """Add ratios to DGL (or torch) and rates."""
    base = "torch" if operation == "activation" else "dgl"
    moved = len(case.stored[1]) * width * 4 if operation != "activation" else case.num_nodes * width * 4 * 5
    return {
        "graph": case.name,
        "operation": operation,
        "width": width,
        "threads": kernels.get_num_threads(),
        "seconds": seconds,
        "ratio": seconds[base] / seconds["f32"],
        "gigabytes_per_second": moved / seconds["f32"] / 1e9,
        "share_of_copy": moved / seconds["f32"] / copy,
        "share_of_gather": seconds.get("gather", np.nan) / seconds["f32"],
        "order_seconds": case.order_seconds,
    }


def table(rows):
    """The rows as a rich table."""
    from rich.table import Table

    result = Table(
        "graph", "operation", "D", "DGL / torch s", "ours s", "ratio", "GB/s", "of copy", "of gather", "other columns"
    )
    for row in rows:
        seconds = row["seconds"]
        base = seconds.get("dgl", seconds.get("torch"))
        others = {n: s for n, s in seconds.items() if n not in ("dgl", "torch", "f32", "gather")}
        result.add_row(
            row["graph"],
            row["operation"],
            str(row["width"]),
            f"{base:.4f}",
            f"{seconds['f32']:.4f}",
            f"{row['ratio']:.2f}",
            f"{row['gigabytes_per_second']:.1f}",
            f"{row['share_of_copy']:.0%}",
            f"{row['share_of_gather']:.0%}" if row["share_of_gather"] == row["share_of_gather"] else "",
            ", ".join(f"{n} {s:.4f}" for n, s in others.items()),
        )
    return result
