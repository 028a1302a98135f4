"""Figures of `distgnn bench`, as `distgnn report` shows them on a page: lines and bars of `distgnn/report/charts.py`.

FOLDER/time.png, time.svg            an epoch of each algorithm, stacked by phase
FOLDER/accuracy.png, accuracy.svg    test metric against epochs and against seconds (with --accuracy)
FOLDER/scaling.png, scaling.svg      speed-up and bytes against ranks (several folders)
"""

from pathlib import Path
from typing import Any

from distgnn.report.benches import curves, phases_of_rows, scaling
from distgnn.report.charts import SECONDS, Axis, Series, legend_beside, plot_lines, plot_stacked, save, styled
from distgnn.system.units import human_seconds


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
