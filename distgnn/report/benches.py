"""What the page says of a bench.json: algorithms against cd-0 and the paper's form, scaling, rows beside DGL."""

from __future__ import annotations

from typing import Any

from distgnn.report import races
from distgnn.report.axes import BYTES, SECONDS, SHARES, Axis
from distgnn.report.bars import Phases, bars, stacked
from distgnn.report.charts import Series, lines
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
DGL_SENTENCE = (
    "Each contestant is a process of its own with the same graph, first weights and threads, and they train in turn. "
    "The bound is the matrix products of an epoch alone, which no program of this kind can do without."
)

Row = dict[str, Any]


def bench_section(bench: Bench, place: int) -> str:
    """One bench.json."""
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
    if bench.race:
        sentence, content = races.SENTENCE, races.race(bench)
    elif bench.against_dgl:
        sentence, content = DGL_SENTENCE, _against_dgl(bench.rows)
    else:
        sentence, content = SENTENCE, _training(bench.rows)
    return section(f"bench-{place}", f"Benchmark: {bench.name}", sentence, about, content)


def label_of(row: Row, rows: list[Row]) -> str:
    """A row's name, with its ranks where there are several counts."""
    several = len({number(one, "ranks") for one in rows}) > 1
    ranks = number(row, "ranks")
    return f"{row['name']}, {ranks:.0f} rank{'s' * (ranks != 1)}" if several and ranks is not None else row["name"]


def _times(value: float) -> str:
    return f"{value:.2f}"


def _table(rows: list[Row]) -> str:
    head = ["", "epoch, median", "± iqr", "× exact", "× paper", "wait, least / mean / most (ms)", "sent per epoch"]
    head += ["most sent by a rank", "exchange buffers", "final metric"]
    return table(head, [_cells(row, rows) for row in rows])


def _cells(row: Row, rows: list[Row]) -> list[str | None]:
    waits = [number(row, key) for key in ("wait_seconds_min", "wait_seconds", "wait_seconds_max")]
    return [
        label_of(row, rows),
        shown(number(row, "epoch_seconds_median"), human_seconds),
        shown(number(row, "epoch_seconds_iqr"), human_seconds),
        shown(number(row, "speedup_vs_exact"), _times),
        shown(number(row, "speedup_vs_paper"), _times),
        " / ".join(f"{1000 * seconds:.3g}" for seconds in waits if seconds is not None) or None,
        shown(number(row, "sent_bytes_per_epoch"), human_bytes),
        shown(number(row, "max_rank_sent_bytes"), human_bytes),
        shown(number(row, "exchange_bytes"), human_bytes),
        shown(number(row, "final_metric"), human_share),
    ]


def _training(rows: list[Row]) -> str:
    phases = [(label_of(row, rows), found) for row in rows if (found := _phases(row))]
    threads = {f"{number(row, 'ranks')} × {number(row, 'threads')}" for row in rows}
    where = ", ".join(sorted(one.replace(".0", "") for one in threads if "None" not in one))
    time = figure(
        "Where the time of an epoch goes",
        stacked(phases, Axis("time per epoch", SECONDS), human_seconds),
        "Medians over epochs of means over ranks, the first epochs left out; ranks × threads: "
        f"{where or 'not recorded'}.",
    )
    comparison = (
        "× exact and × paper: how many times as fast as cd-0 and as the paper's form (above 1 is faster); ± iqr: the "
        "range of the middle half of all epochs; buffers are those of the rank with the largest."
    )
    return part(
        "Against the exact run and the paper's form",
        _table(rows),
        f"<p>{comparison}</p>",
        time,
        _curves(rows),
        _scaling(rows),
    )


def _phases(row: Row) -> Phases | None:
    found = {name: number(row, key) for name, key in PHASES.items()}
    return {name: value for name, value in found.items() if value is not None} or None


def _points(row: Row, x: str, y: str) -> list[tuple[float, float]]:
    curve = row.get("curve")
    found = [(number(point, x), number(point, y)) for point in curve] if isinstance(curve, list) else []
    return [(a, b) for a, b in found if a is not None and b is not None]


def _curves(rows: list[Row]) -> str:
    named = [(label_of(row, rows), row) for row in rows]
    scores = Axis("test metric", SHARES)
    epochs = Axis("epochs trained", whole=True, from_zero=True)
    seconds = Axis("seconds of training", from_zero=True)
    over_epochs = figure(
        "Test metric against epochs",
        lines([Series(name, _points(row, "epoch", "test_metric")) for name, row in named], epochs, scores),
        "What late or narrow rows cost in epochs: a line below cd-0's needs more of them.",
    )
    over_time = figure(
        "Test metric against seconds",
        lines([Series(name, _points(row, "seconds", "test_metric")) for name, row in named], seconds, scores),
        "What they save in time: a line further to the left is sooner at the same metric (evaluation left out).",
    )
    loss = figure(
        "Training loss against epochs",
        lines(
            [Series(name, _points(row, "epoch", "loss")) for name, row in named], epochs, Axis("loss", from_zero=True)
        ),
        "Loss of the last step before each evaluation.",
    )
    return side_by_side(over_epochs, over_time, loss)


def _scaling(rows: list[Row]) -> str:
    names = dict.fromkeys(row["name"] for row in rows)
    of_name = {
        name: sorted((r for r in rows if r["name"] == name and number(r, "ranks")), key=_ranks) for name in names
    }
    if not any(number(row, "speedup_vs_first") for row in rows):
        return ""

    def series(key: str) -> list[Series]:
        return [
            Series(name, [(_ranks(row), value) for row in found if (value := number(row, key)) is not None])
            for name, found in of_name.items()
        ]

    speed = figure(
        "Speed-up against ranks",
        lines(series("speedup_vs_first"), RANKS, Axis("times the first folder", from_zero=True), limit=1.0),
        "Arcs of the graph per second, against the same algorithm on the first folder (the thin line: 1).",
    )
    sent = figure(
        "Bytes against ranks",
        lines(series("sent_bytes_per_epoch"), RANKS, Axis("sent per epoch, all ranks", BYTES, from_zero=True)),
        "What all ranks together send in an epoch: more parts have more vertices in common.",
    )
    return side_by_side(speed, sent)


RANKS = Axis("ranks", whole=True)


def _ranks(row: Row) -> float:
    return number(row, "ranks") or 0.0


def _against_dgl(rows: list[Row]) -> str:
    head = ["contestant", "epoch, median", "± iqr", "× DGL", "of the bound", "peak memory", "of DGL's"]
    cells = [
        [
            row["name"],
            shown(number(row, "epoch_seconds_median"), human_seconds),
            shown(number(row, "epoch_seconds_iqr"), human_seconds),
            shown(number(row, "speedup_vs_dgl"), _times),
            shown(number(row, "times_bound"), _times),
            shown(number(row, "peak_rss_bytes"), human_bytes),
            shown(number(row, "memory_vs_dgl"), _times),
        ]
        for row in rows
    ]
    seconds = [(row["name"], number(row, "epoch_seconds_median") or 0.0) for row in rows]
    memory = [(row["name"], value) for row in rows if (value := number(row, "peak_rss_bytes")) is not None]
    time = figure(
        "An epoch of each",
        bars(seconds, Axis("time per epoch", SECONDS), human_seconds),
        "Median of the counted epochs; shorter is better.",
    )
    held = figure(
        "Peak memory of each",
        bars(memory, Axis("peak memory", BYTES), human_bytes),
        "The most that each process held at any time of its life.",
    )
    return table(head, cells) + side_by_side(time, held)
