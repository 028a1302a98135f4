"""`distgnn info`: what a partition folder holds, without loading it."""

import json
from pathlib import Path

import typer

from distgnn.cli.display import print_columns, print_table
from distgnn.config.task import SPLITS
from distgnn.errors import InputError
from distgnn.system.units import human_bytes

FORMATS = (".png", ".svg", ".pdf")


def info(
    parts: str = typer.Argument(help="Partition folder."),
    as_json: bool = typer.Option(False, "--json", help="Print everything as JSON."),
    against: bool = typer.Option(False, "--against-libra", help="Cut the graph by Libra too, and compare."),
    figure: str | None = typer.Option(None, help="Draw pairs of ranks, copies by degree and loads: .png, .svg, .pdf."),
) -> None:
    """Show sizes, balances and exchange rows of a partition folder."""
    from distgnn.partition import describe

    facts = describe(parts)
    if figure is not None:
        draw_partition(parts, figure)
    if against:
        from distgnn.partition import against_libra

        facts["against_libra"] = against_libra(parts)
    if as_json:
        print(json.dumps(facts, indent=1))
        return
    print_table("Partition", _summary(facts))
    print_columns("Parts", ["part", *PART_COLUMNS, "size"], [_part(part) for part in facts["parts"]])
    if against:
        this, libra = facts["against_libra"]["this"], facts["against_libra"]["libra"]
        rows = []
        for name, value in this.items():
            text = "{:,}" if isinstance(value, int) else "{:.3f}"
            share = f"{value / libra[name]:.3f}" if libra[name] else "–"
            rows.append([name.replace("_", " "), text.format(value), text.format(libra[name]), share])
        print_columns("Against Libra (shuffled)", ["", "this cut", "libra", "this / libra"], rows)
    if 1 < facts["num_parts"] <= 16:
        columns = ["from \\ to", *(str(part) for part in range(facts["num_parts"]))]
        rows = [[str(part), *(f"{rows:,}" for rows in pair)] for part, pair in enumerate(facts["pair_rows"])]
        print_columns("Rows per pair of ranks (one layer, one direction)", columns, rows)


PART_COLUMNS = {"owned": "owned", "interior": "interior", "boundary": "boundary", "source halos": "source_halos"}
PART_COLUMNS |= {"target halos": "target_halos", "arcs": "arcs", "train": "train", "sent": "sent_rows"}


def _part(part: dict) -> list[str]:
    return [str(part["part_id"]), *(f"{part[key]:,}" for key in PART_COLUMNS.values()), human_bytes(part["bytes"])]


def _summary(facts: dict) -> list[tuple[str, str]]:
    graph = facts["graph"]
    splits = " / ".join(f"{graph[split]:,}" for split in SPLITS)
    balances = ", ".join(f"{name} {value:.3f}" for name, value in facts["balances"].items())
    between = f", {facts['rows_between_groups']:,} of them between groups" if "groups" in facts else ""
    rows = f"{facts['exchange_rows']:,} ({facts['exchange_rows_per_node']:.3f} per vertex){between}"
    found = [
        ("graph", f"{facts['name']}: {facts['num_nodes']:,} vertices, {facts['num_arcs']:,} arcs"),
        ("features, classes", f"{graph['num_feats']}, {graph['num_classes']}; labelled train / valid / test {splits}"),
    ]
    if shapes := graph.get("edge_splits", {}):
        pairs = " / ".join(f"{shapes.get(f'{split}_edges', [0])[0]:,}" for split in SPLITS)
        found.append(("edges, train / valid / test", pairs))
    return [
        *found,
        ("cut", f"{facts['num_parts']} parts, {facts['method']}, seed {facts['seed']}"),
        ("direction, self-loops", f"{facts['direction']}, {facts['self_loops']}"),
        ("replication factor", f"{facts['replication_factor']:.3f}"),
        ("exchange rows", f"{rows}, at most {facts['max_rank_rows']:,} sent and received by one rank"),
        ("halos by role", ", ".join(f"{name.replace('_', ' ')} {count:,}" for name, count in facts["roles"].items())),
        ("largest / mean", balances),
    ]


def draw_partition(folder: str, out: str) -> None:
    """Write the figure of a partition folder to a .png, .svg or .pdf file."""
    if Path(out).suffix.lower() not in FORMATS:
        raise InputError(f"cannot write the figure {out}: its name must end in {', '.join(FORMATS)}")
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    from distgnn.partition import copies_by_degree, describe
    from distgnn.report.charts import line_styles
    from distgnn.report.partitions import loads_of

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
