"""`distgnn import-dgl` and `distgnn export-dgl`: cuts from DGL and for DGL."""

import typer

from distgnn.cli.display import print_table
from distgnn.system.output import plain, say


def import_dgl(
    cut: str = typer.Argument(help="DGL's Libra folder (…/4Communities) or partition book (…/NAME.json)."),
    source: str = typer.Argument(help="The graph that was cut, as of distgnn partition."),
    out: str = typer.Option(..., help="Partition folder to write."),
    direction: str = typer.Option("stored", help="stored, both or reversed: what the edges of the cut are."),
    self_loops: str = typer.Option("keep", help="keep, add or remove."),
    sides: str = typer.Option(
        "target", help="Of a book: arcs at the owner of the target, or, as cover, of either: fewest rows."
    ),
    data_root: str | None = typer.Option(None, help="Folder of named datasets (default: DISTGNN_DATA or ./data)."),
    overwrite: bool = typer.Option(False, help="Replace an existing partition folder."),
) -> None:
    """Write a partition folder from a cut that DGL made."""
    from distgnn.cli.commands.partition import rows_of_table
    from distgnn.datasets import load_graph
    from distgnn.datasets.findings.findings import Findings
    from distgnn.partition import write_partition
    from distgnn.partition.dgl_parts import read_dgl_cut

    findings = Findings()
    graph = load_graph(source, data_root, findings=findings)
    for line in findings.lines():
        say(line)
    edge_list = graph.edge_list(direction, self_loops)
    manifest = write_partition(graph, edge_list, read_dgl_cut(cut, edge_list, sides), out, "dgl", overwrite=overwrite)
    print_table("Imported", rows_of_table(manifest, out))


def export_dgl(
    parts: str = typer.Argument(help="Partition folder."),
    out: str = typer.Option(..., help="Folder to write."),
    form: str = typer.Option("libra", "--as", help="libra (communityZ.txt) or book (of dgl.distributed)."),
    overwrite: bool = typer.Option(False, help="Replace an existing folder of this form."),
) -> None:
    """Write the cut of a partition folder as DGL writes its own."""
    from distgnn.partition.dgl_parts import write_dgl_cut

    print(plain(write_dgl_cut(parts, out, form, overwrite)))
