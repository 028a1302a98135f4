"""Figures of a study, and the numbers of untrusted JSON that a page about one shows, too.

time                  epochs by phase: a panel for each network
scaling               seconds of an epoch, and bytes, against ranks
accuracy-4            of 4 ranks: test metric against epochs, and against seconds on each network (with --accuracy)
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
HERE = "here"
Row = dict[str, Any]
Lines = tuple[list[Series], Axis, Axis]


@styled()
def draw(rows: list[Row], title: str, folder: Path | None) -> dict[str, Any]:
    """The figures by name; PNG and SVG files in `folder`."""
    networks = list(dict.fromkeys(row["network"] for row in rows))
    each = {network: [row for row in rows if row["network"] == network] for network in networks}
    found = {"time": _bars(each, title)}
    if len({row["ranks"] for row in rows}) > 1:
        times = [_titled(network, scaling(own)[0]) for network, own in each.items()]
        found["scaling"] = _panels([*times, ("", scaling(each[networks[0]])[1])], title)
    for ranks in dict.fromkeys(row["ranks"] for row in rows if row["curve"]):
        own = {name: [row for row in of if row["ranks"] == ranks and row["curve"]] for name, of in each.items()}
        by_epoch = "", curves(own[networks[0]])[0]
        by_second = [_titled(network, curves(of)[1]) for network, of in own.items()]
        found[f"accuracy-{ranks}"] = _panels([by_epoch, *by_second], f"{title}, {_counted(ranks)}")
    if folder is not None:
        for name, figure in found.items():
            save(figure, folder, name)
    return found


def _titled(network: str, lines: Lines) -> tuple[str, Lines]:
    return (f"{network}, measured" if network == HERE else f"{network}, predicted"), lines


def _counted(ranks: float) -> str:
    return f"{ranks:.0f} rank{'s' * (ranks != 1)}"


def _bars(each: dict[str, list[Row]], title: str) -> Any:
    """Names to the left of the first panel; the seconds of each panel begin at 0 and end with its longest bar."""
    from matplotlib.figure import Figure

    most = max(len(rows) for rows in each.values())
    figure = Figure(figsize=(3.6 + 4.2 * len(each), 1.6 + 0.4 * most), layout="constrained")
    panels = figure.subplots(1, len(each), squeeze=False)[0]
    for place, (axes, (network, rows)) in enumerate(zip(panels, each.items(), strict=True)):
        plot_stacked(axes, phases_of_rows(rows), Axis("time per epoch", SECONDS), human_seconds)
        axes.set_title(_titled(network, ([], Axis(""), Axis("")))[0], fontsize="medium")
        axes.set_xlim(right=1.22 * axes.get_xlim()[1])  # for what stands at the end of a bar
        if place:
            axes.set_yticklabels([])
    figure.suptitle(title)
    legend_beside(figure, panels[0])
    return figure


def _panels(each: list[tuple[str, Lines]], title: str) -> Any:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(2.5 + 4.5 * len(each), 4.5), layout="constrained")
    panels = figure.subplots(1, len(each), squeeze=False)[0]
    for axes, (name, one) in zip(panels, each, strict=True):
        plot_lines(axes, *one)
        axes.set_title(name, fontsize="medium")
    figure.suptitle(title)
    legend_beside(figure, panels[0])
    return figure


def label_of(row: Row, rows: list[Row]) -> str:
    """A row's name, with its ranks and its network where there are several."""
    words = [row["name"]]
    ranks, networks = number(row, "ranks"), {text(one, "network") for one in rows}
    if len({number(one, "ranks") for one in rows}) > 1 and ranks is not None:
        words.append(_counted(ranks))
    return ", ".join(words + [str(text(row, "network"))] * (len(networks) > 1))


def phases_of_rows(rows: list[Row]) -> list[tuple[str, Phases]]:
    """An epoch of each row by phase, where phases were recorded."""
    found = []
    for row in rows:
        phases = {name: value for name, key in PHASES.items() if (value := number(row, key)) is not None}
        if phases:
            found.append((label_of(row, rows), phases))
    return found


def curves(rows: list[Row]) -> list[Lines]:
    """Test metric against epochs and against seconds, and loss against epochs."""
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
    """Seconds of an epoch, and bytes, against ranks."""
    by_ranks = sorted((row for row in rows if number(row, "ranks")), key=lambda row: number(row, "ranks") or 0.0)
    bare = [{key: row.get(key) for key in ("name", "network")} for row in by_ranks]
    labels = [label_of(one, bare) for one in bare]

    def series(key: str) -> list[Series]:
        points: dict[str, list[tuple[float, float]]] = {label: [] for label in labels}
        for label, row in zip(labels, by_ranks, strict=True):
            if (value := number(row, key)) is not None:
                points[label].append((number(row, "ranks") or 0.0, value))
        return [Series(label, found) for label, found in points.items()]

    ranks = Axis("ranks", whole=True)
    return [
        (series("epoch_seconds_median"), ranks, Axis("time per epoch", SECONDS, from_zero=True)),
        (series("sent_bytes_per_epoch"), ranks, Axis("sent per epoch, all ranks", BYTES, from_zero=True)),
    ]


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
