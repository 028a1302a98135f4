"""`distgnn download`: fetch a dataset where there is a network."""

import typer

from distgnn.system.output import plain, say


def download(
    name: str = typer.Argument(help="cora, citeseer, pubmed, reddit, ogbn-arxiv or another of OGB's node graphs."),
    data_root: str | None = typer.Option(None, help="Folder to put it in (default: DISTGNN_DATA or ./data)."),
) -> None:
    """Download a dataset; OGB's need the ogb extra."""
    from distgnn.datasets.downloads import download as fetch

    print(plain(fetch(name, data_root, say)))
