"""Figures and the speed-up of `distgnn bench`, as `distgnn report` shows them: lines and bars of report/charts.py.

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
