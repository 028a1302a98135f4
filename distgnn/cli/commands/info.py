"""`distgnn info`: what a partition folder holds, without loading it."""

import json

import typer

from distgnn.cli.display import print_columns, print_table
from distgnn.config.task import SPLITS
from distgnn.system.units import human_bytes


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
        from distgnn.cli.partition_figure import draw_partition

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
