"""What the page says of a bench.json: algorithms against cd-0 and the paper's form, scaling."""

from __future__ import annotations

from collections.abc import Callable

from distgnn.bench.figures import Row, curves, label_of, number, phases_of_rows, scaling, text
from distgnn.extras.report.charts import lines, stacked
from distgnn.extras.report.html import facts, figure, part, section, shown, side_by_side, table
from distgnn.extras.report.read import Bench
from distgnn.system.plots import SECONDS, Axis
from distgnn.system.units import human_bytes, human_seconds, human_share

SENTENCE = (
    "Algorithms train in turn, a few epochs each, in one process per rank, so that whatever else the machine does "
    "meets all of them. cd-0 is exact; paper is the form of the DistGNN paper (update on copies, nothing kept)."
)


def bench_section(bench: Bench, place: int) -> str:
    machine = bench.content.get("machine")
    command = bench.content.get("command")
    cores = number(machine, "cores")
    about = facts(
        [
            ("graph", text(bench.content, "graph")),
            ("processor", text(machine, "cpu") or None),
            ("cores of the machine", shown(cores, lambda count: f"{count:.0f}")),
            ("system", text(machine, "system")),
            ("command", " ".join(["distgnn", *map(str, command)]) if isinstance(command, list) else None),
        ]
    )
    return section(f"bench-{place}", f"Benchmark: {bench.name}", SENTENCE, about, _training(bench.rows))


def _waits(row: Row) -> str | None:
    waits = [number(row, key) for key in ("wait_seconds_min", "wait_seconds", "wait_seconds_max")]
    return " / ".join(f"{1000 * seconds:.3g}" for seconds in waits if seconds is not None) or None


def _cell(key: str, how: Callable[[float], str]) -> Callable[[Row], str | None]:
    return lambda row: shown(number(row, key), how)


COLUMNS: dict[str, Callable[[Row], str | None]] = {
    "epoch, median": _cell("epoch_seconds_median", human_seconds),
    "± iqr": _cell("epoch_seconds_iqr", human_seconds),
    "× exact": _cell("speedup_vs_exact", "{:.2f}".format),
    "× paper": _cell("speedup_vs_paper", "{:.2f}".format),
    "wait, least / mean / most (ms)": _waits,
    "sent per epoch": _cell("sent_bytes_per_epoch", human_bytes),
    "most sent by a rank": _cell("max_rank_sent_bytes", human_bytes),
    "exchange buffers": _cell("exchange_bytes", human_bytes),
    "final metric": _cell("final_metric", human_share),
}


def _training(rows: list[Row]) -> str:
    threads = {f"{number(row, 'ranks')} × {number(row, 'threads')}" for row in rows}
    where = ", ".join(sorted(one.replace(".0", "") for one in threads if "None" not in one))
    time = figure(
        "Where the time of an epoch goes",
        stacked(phases_of_rows(rows), Axis("time per epoch", SECONDS), human_seconds),
        "Medians over epochs of means over ranks, the first epochs left out; ranks × threads: "
        f"{where or 'not recorded'}.",
    )
    comparison = (
        "× exact and × paper: how many times as fast as cd-0 and as the paper's form (above 1 is faster); ± iqr: the "
        "range of the middle half of all epochs; buffers are those of the rank with the largest."
    )
    drawn = zip(CURVES, curves(rows), strict=True)
    return part(
        "Against the exact run and the paper's form",
        table(["", *COLUMNS], [[label_of(row, rows), *(cell(row) for cell in COLUMNS.values())] for row in rows]),
        f"<p>{comparison}</p>",
        time,
        side_by_side(*(figure(title, lines(*one), sentence) for (title, sentence), one in drawn)),
        _scaling(rows),
    )


CURVES = (
    ("Test metric against epochs", "What late or narrow rows cost in epochs: a line below cd-0's needs more of them."),
    (
        "Test metric against seconds",
        "What they save in time: a line further to the left is sooner at the same metric (evaluation left out).",
    ),
    ("Training loss against epochs", "Loss of the last step before each evaluation."),
)


def _scaling(rows: list[Row]) -> str:
    if not any(number(row, "speedup_vs_first") for row in rows):
        return ""
    speed, sent = scaling(rows)
    return side_by_side(
        figure(
            "Speed-up against ranks",
            lines(*speed),
            "Arcs of the graph per second, against the same algorithm on the first folder, beside the cores in use.",
        ),
        figure(
            "Bytes against ranks",
            lines(*sent),
            "What all ranks together send in an epoch: more parts have more vertices in common.",
        ),
    )
