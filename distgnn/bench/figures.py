"""Figures and the speed-up of `distgnn bench`.

FOLDER/time.png, time.svg            an epoch of each algorithm, stacked by phase
FOLDER/accuracy.png, accuracy.svg    test metric against epochs and against seconds (with --accuracy)
FOLDER/scaling.png, scaling.svg      speed-up and bytes against ranks (several folders)
"""

import math
from pathlib import Path
from typing import Any

from distgnn.system.plots import (
    BYTES,
    SECONDS,
    SHARES,
    Axis,
    Phases,
    Series,
    legend_beside,
    plot_lines,
    plot_stacked,
    save,
    styled,
)
from distgnn.system.units import human_seconds

PHASES = {
    "aggregate": "aggregate_seconds",
    "dense": "dense_seconds",
    "pack": "pack_seconds",
    "all-reduce": "all_reduce_seconds",
    "wait": "wait_seconds",
}
Row = dict[str, Any]
Lines = tuple[list[Series], Axis, Axis]


@styled()
def draw(report: dict[str, Any], folder: Path) -> list[Path]:
    """Draw the figures of what bench.json holds (`graph`, `rows`) into `folder`; returns the files."""
    from matplotlib.figure import Figure

    folder.mkdir(parents=True, exist_ok=True)
    rows, title = report["rows"], report["graph"]
    figure = Figure(figsize=(11, 1.5 + 0.4 * len(rows)), layout="constrained")
    axes = figure.subplots()
    plot_stacked(axes, phases_of_rows(rows), Axis("time per epoch", SECONDS), human_seconds)
    axes.set_title(title)
    legend_beside(figure, axes)
    found = save(figure, folder, "time")
    if any(row.get("curve") for row in rows):
        found += save(_panels(curves(rows)[:2], title), folder, "accuracy")
    if any("speedup_vs_first" in row for row in rows):
        found += save(_panels(scaling(rows), title), folder, "scaling")
    return found


def _panels(each: list[tuple[list[Series], Axis, Axis]], title: str) -> Any:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11.5, 4.5), layout="constrained")
    panels = figure.subplots(1, len(each))
    for axes, one in zip(panels, each, strict=True):
        plot_lines(axes, *one)
    figure.suptitle(title)
    legend_beside(figure, panels[0])
    return figure


def label_of(row: Row, rows: list[Row]) -> str:
    """A row's name, with its ranks where there are several counts."""
    several = len({number(one, "ranks") for one in rows}) > 1
    ranks = number(row, "ranks")
    return f"{row['name']}, {ranks:.0f} rank{'s' * (ranks != 1)}" if several and ranks is not None else row["name"]


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


def _ranks(row: Row) -> float:
    return number(row, "ranks") or 0.0


def number(source: Any, *keys: str | int) -> float | None:
    """A finite number inside nested dicts and lists, or None."""
    value = _inside(source, keys)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return value if math.isfinite(value) else None
    except OverflowError:
        return None


def numbers(values: Any) -> list[float | None]:
    """The numbers of a list, None for what is none; nothing where it is no list."""
    return [number(value) for value in values] if isinstance(values, list) else []


def text(source: Any, *keys: str | int) -> str | None:
    """A text inside nested dicts and lists, or None."""
    value = _inside(source, keys)
    return value if isinstance(value, str) else None


def _inside(value: Any, keys: tuple[str | int, ...]) -> Any:
    for key in keys:
        try:
            value = value[key]
        except (KeyError, IndexError, TypeError):
            return None
    return value


# Scaling: what `distgnn bench` over several partition folders says about more sockets, strong or weak.
#
# Legend, for one algorithm on a folder, and on the first folder (1): A arcs of the graph, t seconds per epoch, c cores.
#
#     speed-up     (A / t) / (A1 / t1)      arcs per second; for cuts of one graph (strong scaling) that is t1 / t
#     efficiency   speed-up / (c / c1)      for graphs that grow with the ranks (weak scaling) that is t1 / t
#
# Cores are those that ranks really have: four ranks of one thread on two cores have half a core each, so that a machine
# which is shared by more ranks than it has cores shows what more parts cost and not what it lacks. Needs no MPI.


def describe_cut(row: dict[str, Any], manifest: dict[str, Any]) -> dict[str, Any]:
    """A row with the size of its graph and the cost of its cut, from partition.json."""
    return row | {key: manifest[key] for key in ("num_nodes", "num_arcs", "replication_factor", "exchange_rows")}


def with_scaling(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows with `speedup_vs_first` and `efficiency`, against the row of the same algorithm on the first folder."""
    first: dict[str, dict] = {}
    for row in rows:
        base = first.setdefault(row["name"], row)
        rate, base_rate = (one["num_arcs"] / one["epoch_seconds_median"] for one in (row, base))
        row["speedup_vs_first"] = rate / base_rate
        row["efficiency"] = row["speedup_vs_first"] * base["cores"] / row["cores"]
    return rows
