"""What the page says of a bench.json: algorithms against cd-0 and the paper's form, scaling."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from distgnn.report.charts import BYTES, SECONDS, SHARES, Axis, Phases, Series, lines, stacked
from distgnn.report.html import facts, figure, part, section, shown, side_by_side, table
from distgnn.report.read import Bench, number, text
from distgnn.system.units import human_bytes, human_seconds, human_share

PHASES = {
    "aggregate": "aggregate_seconds",
    "dense": "dense_seconds",
    "pack": "pack_seconds",
    "all-reduce": "all_reduce_seconds",
    "wait": "wait_seconds",
}
SENTENCE = (
    "Algorithms train in turn, a few epochs each, in one process per rank, so that whatever else the machine does "
    "meets all of them. cd-0 is exact; paper is the form of the DistGNN paper (update on copies, nothing kept)."
)
Row = dict[str, Any]
Lines = tuple[list[Series], Axis, Axis]


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


def label_of(row: Row, rows: list[Row]) -> str:
    """A row's name, with its ranks where there are several counts."""
    several = len({number(one, "ranks") for one in rows}) > 1
    ranks = number(row, "ranks")
    return f"{row['name']}, {ranks:.0f} rank{'s' * (ranks != 1)}" if several and ranks is not None else row["name"]


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


def phases_of_rows(rows: list[Row]) -> list[tuple[str, Phases]]:
    """An epoch of each row by phase, where phases were recorded."""
    found = []
    for row in rows:
        phases = {name: value for name, key in PHASES.items() if (value := number(row, key)) is not None}
        if phases:
            found.append((label_of(row, rows), phases))
    return found


def curves(rows: list[Row]) -> list[Lines]:
    epochs = Axis("epochs trained", whole=True, from_zero=True)
    seconds, scores = Axis("seconds of training", from_zero=True), Axis("test metric", SHARES)

    def series(x: str, y: str) -> list[Series]:
        found = []
        for row in rows:
            curve = row["curve"] if isinstance(row.get("curve"), list) else []
            pairs = [(number(point, x), number(point, y)) for point in curve]
            found.append(Series(label_of(row, rows), [(a, b) for a, b in pairs if a is not None and b is not None]))
        return found

    return [
        (series("epoch", "test_metric"), epochs, scores),
        (series("seconds", "test_metric"), seconds, scores),
        (series("epoch", "loss"), epochs, Axis("loss", from_zero=True)),
    ]


CURVES = (
    ("Test metric against epochs", "What late or narrow rows cost in epochs: a line below cd-0's needs more of them."),
    (
        "Test metric against seconds",
        "What they save in time: a line further to the left is sooner at the same metric (evaluation left out).",
    ),
    ("Training loss against epochs", "Loss of the last step before each evaluation."),
)


def scaling(rows: list[Row]) -> list[Lines]:
    """Speed-up beside the cores in use, and bytes, against ranks."""
    names = dict.fromkeys(row["name"] for row in rows)
    by_ranks = sorted((row for row in rows if number(row, "ranks")), key=_ranks)

    def series(key: str) -> list[Series]:
        of_name = {name: [row for row in by_ranks if row["name"] == name] for name in names}
        return [
            Series(name, [(_ranks(row), value) for row in found if (value := number(row, key)) is not None])
            for name, found in of_name.items()
        ]

    cores = {_ranks(row): value for row in by_ranks if (value := number(row, "cores"))}
    in_use = Series("cores in use", [(ranks, count / min(cores.values())) for ranks, count in cores.items()])
    ranks = Axis("ranks", whole=True)
    speed = Axis("times the first folder", from_zero=True)
    sent = Axis("sent per epoch, all ranks", BYTES, from_zero=True)
    return [
        ([*series("speedup_vs_first"), in_use], ranks, speed),
        (series("sent_bytes_per_epoch"), ranks, sent),
    ]


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


def _ranks(row: Row) -> float:
    return number(row, "ranks") or 0.0
