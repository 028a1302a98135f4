"""`distgnn models`: which layers of which library run how on a cut graph."""

import json
from dataclasses import asdict

import typer

from distgnn.cli.display import print_texts
from distgnn.config import check_choice

LIBRARIES = ("distgnn", "dgl", "pyg")


def register(app: typer.Typer) -> None:
    app.command()(models)


def models(
    library: str | None = typer.Argument(None, help="distgnn, dgl or pyg: these only."),
    as_json: bool = typer.Option(False, "--json", help="Print the rows as JSON."),
) -> None:
    """List our models and the layers of DGL and PyG, how each runs on ranks, and what was tried beside the plain
    libraries."""
    from distgnn.interop.table import HOW, LAYERS
    from distgnn.interop.tried import KINDS, REFUSED

    if library is not None:
        check_choice("library", library, LIBRARIES)
    rows = [layer for layer in LAYERS if library in (None, layer.library)]
    if as_json:
        print(json.dumps([asdict(layer) for layer in rows], indent=1))
        return
    columns = ["library", "model or layer", "runs", "note"]
    print_texts("Layers", columns, [[layer.library, layer.name, layer.how, layer.note] for layer in rows])
    print()
    for how, meaning in HOW.items():
        print(f"{how:8} {meaning}")
    print()
    columns = ["scripts on 1, 2 and 3 ranks", "equal", "refused"]
    print_texts("Beside the plain library", columns, [[kind, str(equal), str(no)] for kind, equal, no in KINDS])
    print()
    print_texts("Refused", ["script or layer", "line"], [list(row) for row in REFUSED])
