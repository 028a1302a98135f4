"""What the page says of benchmarks, partitions, and the JSON of any other command."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import starmap
from typing import Any

from distgnn.bench.figures import curves, label_of, number, phases_of_rows, scaling, text
from distgnn.cli.commands.show import summary_of
from distgnn.extras.report.page import DEEPEST, Item, Section, facts, figures, flat, human, lines, matrix, stacked
from distgnn.extras.report.read import Source, is_square, is_table
from distgnn.system.plots import SECONDS, Axis, Series
from distgnn.system.units import human_seconds

RANK = Axis("rank (part)", whole=True)

# ------------------------------------------------------------------------------------------------------- benchmarks

ABOUT_BENCH = (
    "Algorithms train in turn, a few epochs each, in one process per rank, so that whatever else the machine does "
    "meets all of them. cd-0 is exact. Other networks than this machine's are predicted."
)


COLUMNS = {
    "epoch_seconds_median": "epoch, median",
    "epoch_seconds_low": "from",
    "epoch_seconds_high": "to",
    "emulated_seconds": "emulated",
    "speedup_vs_exact": "× cd-0",
    "wait_seconds_min": "least wait of a rank",
    "wait_seconds": "mean wait",
    "wait_seconds_max": "most",
    "sent_bytes_per_epoch": "sent per epoch",
    "max_rank_sent_bytes": "most sent by a rank",
    "exchange_bytes": "exchange buffers",
    "final_metric": "final metric",
    "epochs_to_target": "epochs to the target",
    "seconds_to_target": "seconds to it",
    "peak_rss_bytes": "memory of a rank",
}


def bench_section(bench: Source) -> Section:
    rows, command = bench.content["rows"], bench.content.get("command")
    about: dict[str, Any] = {key: bench.content[key] for key in ("graph", "machine") if key in bench.content}
    about |= {"command": " ".join(["distgnn", *map(str, command)])} if isinstance(command, list) else {}
    sentence = (
        "× cd-0: how many times as fast as exact training on the same ranks and network ; from … to: the "
        "middle half of all epochs, or the interval of a prediction; buffers are those of the rank with the largest."
    )
    columns = {key: title for key, title in COLUMNS.items() if any(number(row, key) is not None for row in rows)}
    cells = [[label_of(row, rows), *(human(key, number(row, key)) for key in columns)] for row in rows]
    epoch = stacked(phases_of_rows(rows), Axis("time per epoch", SECONDS), human_seconds)
    score, over_time, loss = starmap(lines, curves(rows))
    scaled = len({number(row, "ranks") for row in rows}) > 1
    times, sent = starmap(lines, scaling(rows)) if scaled else ("", "")
    return Section(
        f"Benchmark: {bench.name}",
        ABOUT_BENCH,
        [
            facts("", flat(about, human).items()),
            Item("Against the exact run", cells, ["", *columns.values()], sentence),
            figures("", ("Where the time of an epoch goes", epoch, "Medians over epochs of means over ranks.")),
            figures(
                "",
                ("Test metric against epochs", score, "A line below cd-0's needs more epochs."),
                ("Test metric against seconds", over_time, "A line further to the left is sooner at the same metric."),
                ("Training loss against epochs", loss, "Loss of the last step before each evaluation."),
                ("Time per epoch against ranks", times, "Medians; a line that falls with 1 / ranks scales."),
                ("Bytes against ranks", sent, "More parts have more vertices in common."),
            ),
        ],
    )


# ------------------------------------------------------------------------------------------------------- partitions

ABOUT_PARTS = (
    "The edges of the graph are shared out among the ranks; a vertex whose edges lie on several of them has a copy on "
    "each, and those copies exchange feature rows. An epoch takes as long as its slowest rank."
)


def partition_section(parts: Source) -> Section:
    found, each = parts.content, parts.content["parts"]
    exchanged = [Series(key, [(one["part_id"], one[f"{key}_rows"]) for one in each]) for key in ("sent", "received")]
    drawn = [
        ("Rows per pair of ranks", matrix(found["pair_rows"]), "Of a layer and direction; each has 4 bytes a column."),
        ("Rows of each rank", lines(exchanged, RANK, Axis("rows", from_zero=True)), "Sums of its lines and columns."),
    ]
    items = [facts("", summary_of(found)), figures("", *drawn if len(each) > 1 else ()), _table("Parts", each)]
    return Section(f"Partition: {parts.name}", ABOUT_PARTS, items)


# ------------------------------------------------------------------------- outputs of other commands, by their shape

ABOUT_OUTPUT = "What a command wrote as JSON, with the units that its names say."


def output_section(output: Source) -> Section:
    content = output.content if isinstance(output.content, dict) else {"": output.content}
    items = [item for name, value in _large("", content) for item in _items(name, value)]
    return Section(f"Output: {output.name}", ABOUT_OUTPUT, [facts("", flat(content, human).items()), *items])


def _large(name: str, value: Any, depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Tables and matrices inside nested objects, with their names."""
    if is_table(value) or is_square(value):
        yield name, value
    elif isinstance(value, dict) and depth < DEEPEST:
        for key, one in value.items():
            yield from _large(f"{name} {key}".strip(), one, depth + 1)


def _items(name: str, value: Any) -> Iterator[Item]:
    title = name.replace("_", " ") or "rows"
    if is_square(value):
        yield figures("", (title, matrix(value, "bytes" if "bytes" in name else ""), "From each rank to each rank."))
        return
    yield _table(title, value)
    for place, one in enumerate(value):
        label = text(one, "title") or text(one, "name") or str(place + 1)
        for inside, more in _large("", one):
            yield from _items(f"{name} {label}: {inside}", more)


def _table(title: str, objects: list[dict[str, Any]]) -> Item:
    rows = [flat(one, human) for one in objects]
    columns = list(dict.fromkeys(key for row in rows for key in row))
    return Item(title, [[row.get(one) for one in columns] for row in rows], [one.replace("_", " ") for one in columns])
