"""Figures of `distgnn bench`: where the time goes, and what accuracy costs in epochs and in seconds.

FOLDER/time.png, time.svg            an epoch of each algorithm, stacked by phase; one panel per rank count
FOLDER/accuracy.png, accuracy.svg    test metric against epochs and against seconds (with --accuracy)
FOLDER/scaling.png, scaling.svg      speed-up and bytes against ranks (several folders)

Lines have dashes and markers, phases have lightness and hatching: both survive overlap and grey print. `distgnn report`
shows the same on a page.
"""

from itertools import cycle
from pathlib import Path
from typing import Any

PHASES = {  # key of a row -> (label, colour, hatching)
    "aggregate_seconds": ("aggregate", "#1f5a96", ""),
    "dense_seconds": ("dense", "#cfd6de", ""),
    "pack_seconds": ("pack", "#b0841c", "..."),
    "all_reduce_seconds": ("all-reduce", "#6d3176", ""),
    "wait_seconds": ("wait", "#f2a79f", "///"),
}
COLOURS = ("#0b62a8", "#c2410c", "#15803d", "#7e22ce", "#b91c5c", "#0e7490", "#854d0e", "#475569")
DASHES: tuple[Any, ...] = ("-", (0, (6, 3)), (0, (2, 2)), "-.", (0, (5, 1, 1, 1, 1, 1)), (0, (10, 3)), (0, (1, 2)))
MARKERS = "os^Dv*PX"


def draw(report: dict, folder: Path) -> list[Path]:
    """Draw the figures of a bench.json into `folder`; returns the files.

    Args:
        report: what bench.json holds: `graph` and `rows`.
    """
    import matplotlib

    matplotlib.use("Agg")
    folder.mkdir(parents=True, exist_ok=True)
    found = save(_time_by_phase(report), folder, "time")
    if any(row.get("curve") for row in report["rows"]):
        found += save(_accuracy(report), folder, "accuracy")
    if any("speedup_vs_first" in row for row in report["rows"]):
        found += save(_scaling(report), folder, "scaling")
    return found


def line_styles() -> Any:
    """Colour, dash and marker for one line after another, endlessly; no two of the first 56 lines are alike.

    Each line is thinner than the one before it, which it may cover.
    """
    for place, (colour, marker) in enumerate(cycle(zip(COLOURS, MARKERS, strict=True))):
        width = 2.8 - 0.4 * (place % 5)
        style = {"color": colour, "marker": marker, "linestyle": DASHES[place % len(DASHES)]}
        yield style | {"linewidth": width, "markersize": 3 * width}


def style_panels(figure: Any, panels: Any) -> None:
    """Curves from 0 on, with a grid and one legend; the first panel counts in whole numbers."""
    _whole_numbers(panels[0])
    for panel in panels:
        panel.set_xlim(left=0)
        panel.grid(alpha=0.3)
    _legend_beside(figure, panels[0])


def _time_by_phase(report: dict) -> Any:
    from matplotlib import pyplot

    by_ranks = _by_ranks(report["rows"])
    size = (2.5 + 4.5 * len(by_ranks), 4.5)
    figure, panels = pyplot.subplots(1, len(by_ranks), figsize=size, squeeze=False, layout="constrained")
    for panel, (ranks, rows) in zip(panels[0], by_ranks.items(), strict=True):
        heights = [0.0] * len(rows)
        for key, (label, colour, hatch) in PHASES.items():
            parts = [1000 * row[key] for row in rows]
            style = {"color": colour, "hatch": hatch, "edgecolor": "white", "linewidth": 0.8}
            panel.bar([row["name"] for row in rows], parts, bottom=heights, label=label, **style)
            heights = [height + part for height, part in zip(heights, parts, strict=True)]
        panel.set_title(f"{report['graph']}, {ranks} rank{'s' * (ranks != 1)}")
        panel.tick_params(axis="x", rotation=60)
    panels[0][0].set_ylabel("ms per epoch (mean over ranks)")
    _legend_beside(figure, panels[0][0], reverse=True)
    return figure


def _accuracy(report: dict) -> Any:
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(1, 2, figsize=(11.5, 4.5), sharey=True, layout="constrained")
    several = len({row["ranks"] for row in report["rows"]}) > 1
    rows = [row for row in report["rows"] if row.get("curve")]
    for row, style in zip(rows, line_styles(), strict=False):
        label = f"{row['name']}, {row['ranks']} ranks" if several else row["name"]
        metric = [100 * point["test_metric"] for point in row["curve"]]
        for panel, key in zip(panels, ("epoch", "seconds"), strict=True):
            panel.plot([point[key] for point in row["curve"]], metric, label=label, **style)
    panels[0].set_xlabel("epochs trained")
    panels[1].set_xlabel("seconds of training")
    panels[0].set_ylabel("test metric (%)")
    figure.suptitle(report["graph"])
    style_panels(figure, panels)
    return figure


def _scaling(report: dict) -> Any:
    from matplotlib import pyplot

    figure, (speed, sent) = pyplot.subplots(1, 2, figsize=(11.5, 4.5), layout="constrained")
    names = dict.fromkeys(row["name"] for row in report["rows"])
    for name, style in zip(names, line_styles(), strict=False):
        rows = sorted((row for row in report["rows"] if row["name"] == name), key=lambda row: row["ranks"])
        ranks = [row["ranks"] for row in rows]
        speed.plot(ranks, [row["speedup_vs_first"] for row in rows], label=name, **style)
        sent.plot(ranks, [row["sent_bytes_per_epoch"] / 1e6 for row in rows], label=name, **style)
    cores = {row["ranks"]: row["cores"] / report["rows"][0]["cores"] for row in report["rows"]}
    speed.plot(*zip(*sorted(cores.items()), strict=True), "k:", linewidth=1, label="cores in use")
    figure.suptitle(report["graph"])
    speed.set_ylabel("speed-up (arcs per second, first folder: 1)")
    sent.set_ylabel("MB sent per epoch, all ranks")
    for panel in (speed, sent):
        panel.set_xlabel("ranks")
        panel.set_ylim(bottom=0)
        panel.grid(alpha=0.3)
        _whole_numbers(panel)
    _legend_beside(figure, speed)
    return figure


def _legend_beside(figure: Any, panel: Any, reverse: bool = False) -> None:
    """One legend for all panels, outside of what is plotted."""
    handles, labels = panel.get_legend_handles_labels()
    step = -1 if reverse else 1  # stacked bars: the topmost phase first
    figure.legend(handles[::step], labels[::step], loc="outside right upper", fontsize="small", handlelength=3.5)


def _whole_numbers(panel: Any) -> None:
    from matplotlib.ticker import MaxNLocator

    panel.xaxis.set_major_locator(MaxNLocator(integer=True))


def _by_ranks(rows: list[dict]) -> dict[int, list[dict]]:
    found: dict[int, list[dict]] = {}
    for row in rows:
        found.setdefault(row["ranks"], []).append(row)
    return found


def save(figure: Any, folder: Path, name: str) -> list[Path]:
    """Write a figure as PNG and SVG, and close it; returns the files."""
    from matplotlib import pyplot

    paths = [folder / f"{name}.{kind}" for kind in ("png", "svg")]
    for path in paths:
        figure.savefig(path, dpi=150)
    pyplot.close(figure)
    return paths
