"""Figures of a race: validation accuracy against seconds of training and against passes over the graph.

FOLDER/time_to_accuracy.png, .svg    a line for each contestant and seed; the target is dashed
"""

from pathlib import Path
from typing import Any

from distgnn.bench.figures import line_styles, save, style_panels

AXES = {"passes": "passes over the graph", "seconds": "seconds of training"}


def draw(report: dict, folder: Path) -> list[Path]:
    """Draw the curves of a bench.json of a race into `folder`; returns the files."""
    import matplotlib

    matplotlib.use("Agg")
    folder.mkdir(parents=True, exist_ok=True)
    return save(_curves(report), folder, "time_to_accuracy")


def _curves(report: dict) -> Any:
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(1, 2, figsize=(11.5, 4.5), sharey=True, layout="constrained")
    styles = dict(zip([row["contestant"] for row in report["rows"]], line_styles(), strict=False))
    named = set()
    for run in report["runs"]:
        label = None if run["contestant"] in named else run["contestant"]
        named.add(run["contestant"])
        valid = [100 * point["valid_metric"] for point in run["curve"]]
        style = styles[run["contestant"]] | {"markersize": 3, "linewidth": 1.2}
        for panel, key in zip(panels, AXES, strict=True):
            panel.plot([point[key] for point in run["curve"]], valid, label=label, **style)
    for panel, text in zip(panels, AXES.values(), strict=True):
        panel.axhline(100 * report["target"], color="black", linestyle="--", linewidth=0.8)
        panel.set_xlabel(text)
    panels[0].set_ylabel("validation accuracy (%)")
    figure.suptitle(report["graph"])
    style_panels(figure, panels)
    return figure
