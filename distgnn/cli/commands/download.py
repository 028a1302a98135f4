"""`distgnn download`: fetch a dataset where there is a network."""

import typer


def register(app: typer.Typer) -> None:
    app.command()(download)


def download(
    name: str = typer.Argument(help="Dataset, for example ogbn-arxiv."),
    data_root: str | None = typer.Option(None, help="Folder to put it in (default: DISTGNN_DATA or ./data)."),
) -> None:
    """Download a dataset through the ogb extra."""
    from distgnn.datasets.formats.ogb_download import download as fetch

    print(fetch(name, data_root))
