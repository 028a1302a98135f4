"""`distgnn info`: what a partition folder holds, without loading it."""

import json

import typer

from distgnn.cli.display import print_columns, print_table
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
    print_columns("Parts", PART_COLUMNS, [_part(part) for part in facts["parts"]])
    if against:
        compared = facts["against_libra"]
        names = ["", "this cut", "libra", "this / libra"]
        print_columns("Against Libra (shuffled)", names, [_compared(name, compared) for name in compared["this"]])
    if 1 < facts["num_parts"] <= 16:
        columns = ["from \\ to", *(str(part) for part in range(facts["num_parts"]))]
        rows = [[str(part), *(f"{rows:,}" for rows in pair)] for part, pair in enumerate(facts["pair_rows"])]
        print_columns("Rows per pair of ranks (one layer, one direction)", columns, rows)


PART_COLUMNS = [
    "part",
    "owned",
    "interior",
    "boundary",
    "source halos",
    "target halos",
    "arcs",
    "train",
    "sent",
    "size",
]


def _part(part: dict) -> list[str]:
    names = ("owned", "interior", "boundary", "source_halos", "target_halos", "arcs", "train", "sent_rows")
    return [str(part["part_id"]), *(f"{part[name]:,}" for name in names), human_bytes(part["bytes"])]


def _compared(name: str, facts: dict) -> list[str]:
    this, libra = facts["this"][name], facts["libra"][name]
    text = "{:,}" if isinstance(this, int) else "{:.3f}"
    return [name.replace("_", " "), text.format(this), text.format(libra), f"{this / libra:.3f}" if libra else "–"]


def _edge_splits(graph: dict) -> list[tuple[str, str]]:
    """Pairs of each split of edges, where there are any."""
    shapes = graph.get("edge_splits", {})
    counts = [f"{shapes.get(f'{split}_edges', [0])[0]:,}" for split in ("train", "valid", "test")]
    return [("edges, train / valid / test", " / ".join(counts))] if shapes else []


def _summary(facts: dict) -> list[tuple[str, str]]:
    graph = facts["graph"]
    splits = " / ".join(f"{graph[split]:,}" for split in ("train", "valid", "test"))
    balances = ", ".join(f"{name} {value:.3f}" for name, value in facts["balances"].items())
    between = f", {facts['rows_between_groups']:,} of them between groups" if "groups" in facts else ""
    rows = f"{facts['exchange_rows']:,} ({facts['exchange_rows_per_node']:.3f} per vertex){between}"
    return [
        ("graph", f"{facts['name']}: {facts['num_nodes']:,} vertices, {facts['num_arcs']:,} arcs"),
        ("features, classes", f"{graph['num_feats']}, {graph['num_classes']}; labelled train / valid / test {splits}"),
        *_edge_splits(graph),
        ("cut", f"{facts['num_parts']} parts, {facts['method']}, seed {facts['seed']}"),
        ("direction, self-loops", f"{facts['direction']}, {facts['self_loops']}"),
        ("replication factor", f"{facts['replication_factor']:.3f}"),
        ("exchange rows", f"{rows}, at most {facts['max_rank_rows']:,} sent and received by one rank"),
        ("halos by role", ", ".join(f"{name.replace('_', ' ')} {count:,}" for name, count in facts["roles"].items())),
        ("largest / mean", balances),
    ]
