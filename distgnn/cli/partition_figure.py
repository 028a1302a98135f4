"""A partition in one picture: rows per pair of ranks, copies by degree, loads of each part."""

from pathlib import Path
from typing import Any

from distgnn.errors import InputError

FORMATS = (".png", ".svg", ".pdf")
LOADS = {
    "arcs": "arcs",
    "owned": "owned vertices",
    "rows": "local rows",
    "train": "training vertices",
    "exchanged": "exchanged rows",
}


def draw_partition(folder: str, out: str) -> None:
    """Write the figure of a partition folder to a .png, .svg or .pdf file.

    Raises: PartitionFormatError; InputError for another kind of file or a place that cannot be written.
    """
    if Path(out).suffix.lower() not in FORMATS:
        raise InputError(f"cannot write the figure {out}: its name must end in {', '.join(FORMATS)}")
    from matplotlib.figure import Figure

    from distgnn.partition import copies_by_degree, describe

    facts, degrees = describe(folder), copies_by_degree(folder)
    figure = Figure(figsize=(16.5, 4.4), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    _pairs(figure, left, facts)
    _copies(middle, degrees)
    _loads(right, facts)
    cut = f"{facts['name']}: {facts['num_parts']} parts, {facts['method']}, seed {facts['seed']}"
    rows = f"{facts['exchange_rows']:,} exchange rows"
    figure.suptitle(f"{cut}; replication factor {facts['replication_factor']:.3f}, {rows}")
    try:
        figure.savefig(out, dpi=150)
    except OSError as error:
        raise InputError(f"cannot write the figure {out}: {error.strerror or error}") from error


def _pairs(figure: Any, axes: Any, facts: dict) -> None:
    image = axes.imshow(facts["pair_rows"], cmap="Blues")
    figure.colorbar(image, ax=axes, shrink=0.85, label="rows")
    axes.set(title="rows per pair of ranks (one layer, one direction)", xlabel="to rank", ylabel="from rank")
    _whole_numbers(axes.xaxis, axes.yaxis)


def _copies(axes: Any, degrees: dict) -> None:
    axes.plot(degrees["from_degree"], degrees["copies"], marker="o")
    axes.set_xscale("log", base=2)
    axes.set_ylim(bottom=1)
    axes.grid(alpha=0.3)
    title, bins = "copies of a vertex by its degree", "arcs, in and out (each point: from here to the next)"
    axes.set(title=title, xlabel=bins, ylabel="mean copies, the owner's included")


def _loads(axes: Any, facts: dict) -> None:
    from distgnn.report.charts import line_styles

    parts = [part | {"exchanged": part["sent_rows"] + part["received_rows"]} for part in facts["parts"]]
    for (key, label), style in zip(LOADS.items(), line_styles(), strict=False):
        values = [part[key] for part in parts]
        mean = sum(values) / len(values)
        if mean:
            heights = sorted((value / mean for value in values), reverse=True)
            axes.plot(range(1, len(heights) + 1), heights, label=f"{label}, at most {heights[0]:.2f}", **style)
    axes.grid(alpha=0.3)
    axes.legend(loc="upper left", bbox_to_anchor=(1.02, 1), borderaxespad=0, handlelength=3.5)
    axes.set(title="loads of the parts", xlabel="parts, largest first of each load", ylabel="times the mean")
    _whole_numbers(axes.xaxis)


def _whole_numbers(*each: Any) -> None:
    """Ticks of ranks and parts are whole numbers."""
    from matplotlib.ticker import MaxNLocator

    for axis in each:
        axis.set_major_locator(MaxNLocator(integer=True))
