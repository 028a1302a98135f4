"""Commands that show what is there: a partition folder, the layers that run, the cuts that are kept."""

import json
import time
from dataclasses import asdict

import typer

from distgnn.cli.display import feats_of, print_columns, print_table
from distgnn.cli.options import AsJson
from distgnn.config import check_choice
from distgnn.config.task import SPLITS
from distgnn.system.units import human_bytes

LIBRARIES = ("distgnn", "dgl", "pyg")


def info(
    parts: str = typer.Argument(help="Partition folder."),
    as_json: AsJson = False,
    against: bool = typer.Option(False, "--against-libra", help="Cut the graph by Libra too, and compare."),
) -> None:
    """Show sizes, balances and exchange rows of a partition folder."""
    from distgnn.partition import describe

    facts = describe(parts)
    if against:
        from distgnn.partition import against_libra

        facts["against_libra"] = against_libra(parts)
    if as_json:
        print(json.dumps(facts, indent=1))
        return
    print_table("Partition", summary_of(facts))
    print_columns("Parts", ["part", *PART_COLUMNS, "size"], [_part(part) for part in facts["parts"]])
    each = facts["num_parts"] <= MOST_COLUMNS
    for kind in ("types", "relations"):
        if kind in facts:
            parts_shown = [f"part {part}" for part in range(facts["num_parts"])] if each else ["fewest", "most"]
            columns = [kind[:-1], "", *parts_shown, "largest / mean"]
            print_columns(kind.capitalize(), columns, _by_part(facts[kind], each))
    if against:
        this, libra = facts["against_libra"]["this"], facts["against_libra"]["libra"]
        rows = []
        for name, value in this.items():
            text = "{:,}" if isinstance(value, int) else "{:.3f}"
            share = f"{value / libra[name]:.3f}" if libra[name] else "–"
            rows.append([name.replace("_", " "), text.format(value), text.format(libra[name]), share])
        print_columns("Against Libra (shuffled)", ["", "this cut", "libra", "this / libra"], rows)
    if 1 < facts["num_parts"] <= MOST_COLUMNS:
        columns = ["from \\ to", *(str(part) for part in range(facts["num_parts"]))]
        rows = [[str(part), *(f"{rows:,}" for rows in pair)] for part, pair in enumerate(facts["pair_rows"])]
        print_columns("Rows per pair of ranks (one layer, one direction)", columns, rows)


MOST_COLUMNS = 16  # of tables with one for each part
PART_COLUMNS = {"owned": "owned", "interior": "interior", "boundary": "boundary", "source halos": "source_halos"}
PART_COLUMNS |= {"target halos": "target_halos", "arcs": "arcs", "train": "train", "sent": "sent_rows"}


def _part(part: dict) -> list[str]:
    return [str(part["part_id"]), *(f"{part[key]:,}" for key in PART_COLUMNS.values()), human_bytes(part["bytes"])]


def _by_part(counts: dict[str, dict[str, list[int]]], each: bool) -> list[list[str]]:
    """Rows of the tables of types and relations; each: of every part, else of the parts with fewest and most."""
    found = []
    for name, of in counts.items():
        for what, rows in of.items():
            largest = f"{max(rows) * len(rows) / sum(rows):.3f}" if sum(rows) else "–"
            shown = rows if each else [min(rows), max(rows)]
            if what != "train" or any(rows):
                found.append([name, what, *(f"{count:,}" for count in shown), largest])
    return found


def summary_of(facts: dict) -> list[tuple[str, str]]:
    graph = facts["graph"]
    splits = " / ".join(f"{graph[split]:,}" for split in SPLITS)
    balances = ", ".join(f"{name} {value:.3f}" for name, value in facts["balances"].items())
    between = f", {facts['rows_between_groups']:,} of them between groups" if "groups" in facts else ""
    rows = f"{facts['exchange_rows']:,} ({facts['exchange_rows_per_node']:.3f} per vertex){between}"
    found = [
        ("graph", f"{facts['name']}: {facts['num_nodes']:,} vertices, {facts['num_arcs']:,} arcs"),
        ("features, classes", f"{feats_of(graph)}, {graph['num_classes']}; labelled train / valid / test {splits}"),
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


def models(
    library: str | None = typer.Argument(None, help="distgnn, dgl or pyg: these only."), as_json: AsJson = False
) -> None:
    """List our models and the layers of DGL and PyG, how each runs on ranks, and what was tried beside the plain
    libraries."""
    from distgnn.interop.table import HOW, LAYERS, tried

    if library is not None:
        check_choice("library", library, LIBRARIES)
    rows = [layer for layer in LAYERS if library in (None, layer.library)]
    if as_json:
        print(json.dumps([asdict(layer) for layer in rows], indent=1))
        return
    columns = ["library", "model or layer", "runs", "note"]
    print_columns("Layers", columns, [[one.library, one.name, one.how, one.note] for one in rows], words=True)
    print()
    for how, meaning in HOW.items():
        print(f"{how:8} {meaning}")
    print()
    kinds, lines = tried()
    columns = ["scripts", "equal on 1, 2 and 3 ranks", "refused on several", "of these equal on one"]
    print_columns("Beside the plain library", columns, [[str(cell) for cell in row] for row in kinds], words=True)
    print()
    refused = []
    for line, names in lines:
        first, *others = names.split(", ")  # the guide's page on layers has all
        refused.append([first + (f" and {len(others)} more" if others else ""), line])
    print_columns("Refused on several ranks", ["scripts and layers", "line"], refused, words=True)


def cache(
    clear: bool = typer.Option(False, "--clear", help="Remove all that is not in use."), as_json: AsJson = False
) -> None:
    """List the cuts that are kept, or clear them; DISTGNN_CACHE is their folder, DISTGNN_CACHE_SIZE their limit."""
    from distgnn.fitting import cut_cache

    if clear:
        gone, busy = cut_cache.clear()
        in_use = f"; {len(busy)} in use" if busy else ""
        print(f"removed {len(gone)}, {human_bytes(sum(one.num_bytes for one in gone))}{in_use}")
        return
    found, root, most = cut_cache.entries(), cut_cache.cache_root(), cut_cache.most_bytes()
    if as_json:
        rows = [{"path": str(one.path), "what": one.what, "used": one.used, "bytes": one.num_bytes} for one in found]
        print(json.dumps({"folder": str(root), "limit": most, "entries": rows}, indent=1))
        return
    total = sum(one.num_bytes for one in found)
    title = f"{root}: {human_bytes(total)} of at most {human_bytes(most)}"
    rows_of_table = [[one.what, human_bytes(one.num_bytes), _ago(one.used), one.path.name] for one in found]
    print_columns(title, ["kept", "size", "last used", "name"], rows_of_table)


def _ago(used: float) -> str:
    minutes = max(0.0, time.time() - used) / 60
    for size, name in ((1440, "d"), (60, "h")):
        if minutes >= size:
            return f"{minutes / size:.0f} {name} ago"
    return f"{minutes:.0f} min ago"
