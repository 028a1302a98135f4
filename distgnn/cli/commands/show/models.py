"""`distgnn models`: which layers of which library run how on a cut graph."""

import json
from dataclasses import asdict

import typer

from distgnn.cli.display import print_columns
from distgnn.config import check_choice

LIBRARIES = ("distgnn", "dgl", "pyg")


def models(
    library: str | None = typer.Argument(None, help="distgnn, dgl or pyg: these only."),
    as_json: bool = typer.Option(False, "--json", help="Print the rows as JSON."),
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
