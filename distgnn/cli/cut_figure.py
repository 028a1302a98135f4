"""The figure of a partition folder: rows per pair of ranks, copies by degree, loads of the parts."""

from pathlib import Path
from typing import Any

from distgnn.errors import InputError
from distgnn.system.plots import Series, line_styles

FORMATS = (".png", ".svg", ".pdf")
LOADS = {
    "arcs": "arcs",
    "owned": "owned vertices",
    "rows": "copies",
    "train": "training vertices",
    "exchanged": "exchanged rows",
}


def loads_of(found: dict[str, Any]) -> list[Series]:
    parts = [one | {"exchanged": one["sent_rows"] + one["received_rows"]} for one in found["parts"]]
    means = {name: sum(one[key] for one in parts) / len(parts) for key, name in LOADS.items()}
    return [
        Series(name, [(one["part_id"], one[key] / means[name]) for one in parts])
        for key, name in LOADS.items()
        if means[name]
    ]


def draw_partition(folder: str, out: str) -> None:
    """Write the figure of a partition folder to a .png, .svg or .pdf file."""
    if Path(out).suffix.lower() not in FORMATS:
        raise InputError(f"cannot write the figure {out}: its name must end in {', '.join(FORMATS)}")
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    from distgnn.partition import copies_by_degree, describe

    facts, degrees = describe(folder), copies_by_degree(folder)
    figure = Figure(figsize=(16.5, 4.4), layout="constrained")
    pairs, copies, loads = figure.subplots(1, 3)

    image = pairs.imshow(facts["pair_rows"], cmap="Blues")
    figure.colorbar(image, ax=pairs, shrink=0.85, label="rows")
    pairs.set(title="rows per pair of ranks (one layer, one direction)", xlabel="to rank", ylabel="from rank")

    copies.plot(degrees["from_degree"], degrees["copies"], marker="o")
    copies.set_xscale("log", base=2)
    copies.set_ylim(bottom=1)
    bins = "arcs, in and out (each point: from here to the next)"
    copies.set(title="copies of a vertex by its degree", xlabel=bins, ylabel="mean copies, the owner's included")

    for one, style in zip(loads_of(facts), line_styles(), strict=False):
        heights = sorted((value for _, value in one.points), reverse=True)
        loads.plot(range(1, len(heights) + 1), heights, label=f"{one.name}, at most {heights[0]:.2f}", **style)
    loads.legend(loc="upper left", bbox_to_anchor=(1.02, 1), borderaxespad=0, handlelength=3.5)
    loads.set(title="loads of the parts", xlabel="parts, largest first of each load", ylabel="times the mean")

    for axes in (copies, loads):
        axes.grid(alpha=0.3)
    for axis in (pairs.xaxis, pairs.yaxis, loads.xaxis):  # of ranks and parts
        axis.set_major_locator(MaxNLocator(integer=True))
    cut = f"{facts['name']}: {facts['num_parts']} parts, {facts['method']}, seed {facts['seed']}"
    rows = f"{facts['exchange_rows']:,} exchange rows"
    figure.suptitle(f"{cut}; replication factor {facts['replication_factor']:.3f}, {rows}")
    try:
        figure.savefig(out, dpi=150)
    except OSError as error:
        raise InputError(f"cannot write the figure {out}: {error.strerror or error}") from error
