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
    """List our models and the layers of DGL and PyG, and how each runs on ranks."""
    from distgnn.interop.table import HOW, LAYERS

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
