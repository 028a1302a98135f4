"""Commands that make partition folders: from a graph, from another folder, from a partition book of DGL's."""

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from distgnn.cli.display import feats_of, print_table
from distgnn.cli.options import AsJson, Only, Quiet, in_panel, with_options
from distgnn.config import CutConfig, num_threads
from distgnn.errors import InputError
from distgnn.fitting.progress import phases
from distgnn.system.output import plain, say
from distgnn.system.units import human_bytes, human_seconds

NODES = "Vertices in a table"
TABLE = "Table beside a table of edges: .csv, .tsv or .parquet; its columns of numbers are features."
LABEL = "Its column of labels; an empty cell is none. --split may name a column, of train, valid and test."
BALANCES = {"arcs": "edge", "owned": "owned", "copies": "copies"}

DATA_ROOT = "Folder of named datasets (default: DISTGNN_DATA or ./data)."
AllThreads = Annotated[int | None, typer.Option(help="Threads (default: all cores).")]
Overwrite = Annotated[bool, typer.Option(help="Replace an existing partition folder, if nothing else is in it.")]
OPTIONS = Only(
    "method", "refine", "effort", "seed", "direction", "self_loops", "order", "capacities", "normalize_feats",
    "memory", "split", "renumber", "merge", "link_split", "clusters",
)  # fmt: skip


@with_options
def partition(
    config: Annotated[CutConfig, OPTIONS],
    source: str = typer.Argument(
        help="Dataset name, generated graph (rmat:…, communities:… or typed:…), folder, or file of a graph."
    ),
    parts: str | None = typer.Option(
        None, help="Parts, one per rank; 8x4: 8 machines of 4 ranks, cut between machines first.", show_default=False
    ),
    out: str | None = typer.Option(None, help="Partition folder to write.", show_default=False),
    feats: str | None = typer.Option(None, help="File of features beside a file of edges: a row for each vertex."),
    labels: str | None = typer.Option(None, help="File of labels beside a file of edges: .npy, .npz, .pt or a table."),
    nodes: str | None = in_panel(NODES, None, TABLE),
    id: str | None = in_panel(
        NODES, None, "Its column of names, which edges use (default: one called id, name, node)."
    ),
    label: str | None = in_panel(NODES, None, LABEL),
    validate: bool = typer.Option(False, "--validate", help="Print all that is found in the graph, and cut nothing."),
    data_root: str | None = typer.Option(None, help=DATA_ROOT),
    threads: AllThreads = None,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Cut a graph into parts with halo vertices and write a partition folder."""
    from distgnn import kernels
    from distgnn.datasets.findings.check import find_all
    from distgnn.partition import partition_graph

    graph, config = with_files(source, config, {"x": feats, "y": labels}, {"nodes": nodes, "id": id, "label": label})
    if validate:
        findings = find_all(graph, data_root, config.direction, config.split is not None, config.renumber)
        if as_json:
            print(json.dumps([asdict(finding) for finding in findings], indent=1))
        else:
            print("\n".join(plain(line) for line in findings.table().splitlines()))
        raise typer.Exit(2 if findings.wrong else 0)
    if parts is None or out is None:
        raise InputError(f"Missing option '{'--parts' if parts is None else '--out'}'.")
    machines, times, ranks = parts.partition("x")
    try:
        groups = int(machines) if times else 1
        num_parts = groups * int(ranks if times else machines)
    except ValueError:
        said = f"{parts!r} is not a valid integer, nor two of them as in 8x4"
        raise typer.BadParameter(said, param_hint="--parts") from None
    speeds: Any = config.capacities and str(config.capacities).split(",")
    config = replace(config, groups=groups, capacities=speeds)
    kernels.set_num_threads(threads or num_threads())
    with phases(not quiet and not as_json) as advance:
        manifest = partition_graph(
            graph,
            num_parts,
            out,
            config,
            overwrite=overwrite,
            data_root=data_root,
            progress=advance,
            say=lambda line: None if quiet else say(line),
        )
    show(manifest, out, quiet, as_json)


def with_files(
    source: str, config: CutConfig, columns: dict[str, str | None], tables: dict[str, str | None]
) -> tuple[Any, CutConfig]:
    """The graph, with what lies beside a file of edges, and how it is cut.

    Args: columns: a file of each; tables: the file of vertices and names of its columns.
    """
    given: dict[str, Any] = {name: file for name, file in columns.items() if file is not None}
    if tables["nodes"] is not None:
        if given:
            raise InputError("--nodes has features and labels: leave --feats and --labels out")
        given = dict(tables)
        if config.split is not None and "," not in config.split:
            config, given["split"] = replace(config, split=None), config.split
        config = replace(config, renumber=False)  # edges name vertices in any case
    elif any(tables.values()):
        raise InputError("--id and --label name columns of --nodes FILE")
    elif given and config.renumber:
        raise InputError("rows of --feats and --labels are in the order of ids from 0: leave --renumber out")
    return {"edge_index": source, "name": Path(source).name.partition(".")[0]} | given if given else source, config


def show(manifest: dict[str, Any], out: str, quiet: bool, as_json: bool) -> None:
    """Print what was cut: a table, or `partition.json` without its parts."""
    if as_json:
        print(json.dumps({name: value for name, value in manifest.items() if name != "parts"}, indent=1))
    elif not quiet:
        print_table("Partitioned", rows_of_table(manifest, out))


def rows_of_table(manifest: dict[str, Any], out: str) -> list[tuple[str, str]]:
    graph = manifest["graph"]
    size = f"{manifest['num_nodes']:,} vertices, {manifest['num_arcs']:,} arcs"
    most = f"at most {manifest['max_rank_rows']:,} sent and received by one rank"
    balances = (f"{name} {manifest[f'{key}_balance']:.3f}" for name, key in BALANCES.items())
    return [
        ("graph", f"{manifest['name']}: {size}, {feats_of(graph)} features, {graph['num_classes']} classes"),
        ("parts", f"{manifest['num_parts']} ({manifest['method']}, seed {manifest['seed']})"),
        ("replication factor", f"{manifest['replication_factor']:.3f}"),
        ("exchange rows", f"{manifest['exchange_rows']:,} per layer and direction, {most}"),
        ("balance (max / mean)", ", ".join(balances)),
        ("time and memory", f"{human_seconds(manifest['seconds'])}, {human_bytes(manifest['peak_rss_bytes'])}"),
        ("folder", out),
    ]


@with_options
def repartition(
    config: Annotated[CutConfig, Only("refine", "capacities")],
    old: str = typer.Argument(metavar="PARTS", help="Partition folder; it stays as it is."),
    parts: int = typer.Option(..., help="Parts of the new cut, one per rank."),
    out: str = typer.Option(..., help="Partition folder to write."),
    method: str | None = typer.Option(None, help="cmr, libra, metis, kahypar or random (default: as the old cut)."),
    effort: str | None = typer.Option(None, help="fast, normal or best (default: as the old cut)."),
    seed: int | None = typer.Option(None, help="Of the shuffled stream (default: as the old cut)."),
    order: str | None = typer.Option(None, help="shuffled or stored (default: as the old cut)."),
    merge: bool = typer.Option(
        False, help="Join whole parts and even out, in place of a new cut: seconds, and more copies. Fewer parts only."
    ),
    threads: AllThreads = None,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Cut the graph of a partition folder anew; the files are those that `partition` makes from the source."""
    from distgnn import kernels
    from distgnn.partition.repartition import merge_parts
    from distgnn.partition.repartition import repartition as cut_anew

    kernels.set_num_threads(threads or num_threads())
    options: dict[str, Any] = {"method": method, "effort": effort, "seed": seed, "order": order}
    options["refine"] = config.refine
    options["capacities"] = config.capacities and str(config.capacities).split(",")
    if merge and any(value is not None and value is not False for value in options.values()):
        raise InputError("--merge takes the old cut as it is: leave --method, --seed, --order and the like out")
    with phases(not quiet and not as_json) as advance:
        if merge:
            manifest = merge_parts(old, parts, out, overwrite=overwrite, progress=advance)
        else:
            manifest = cut_anew(old, parts, out, overwrite=overwrite, progress=advance, **options)
    show(manifest, out, quiet, as_json)


def import_dgl(
    cut: str = typer.Argument(help="DGL's partition book (…/NAME.json)."),
    source: str = typer.Argument(help="The graph that was cut, as of distgnn partition."),
    out: str = typer.Option(..., help="Partition folder to write."),
    direction: str = typer.Option("stored", help="stored, both or reversed: what the edges of the cut are."),
    self_loops: str = typer.Option("keep", help="keep, add or remove."),
    data_root: str | None = typer.Option(None, help=DATA_ROOT),
    overwrite: bool = typer.Option(False, help="Replace an existing partition folder."),
) -> None:
    """Write a partition folder from a cut that DGL made."""
    from distgnn.datasets import load_graph
    from distgnn.datasets.findings.findings import Findings
    from distgnn.partition import write_partition
    from distgnn.partition.dgl_parts import read_dgl_cut

    findings = Findings()
    graph = load_graph(source, data_root, findings=findings)
    for line in findings.lines():
        say(line)
    edge_list = graph.edge_list(direction, self_loops)
    manifest = write_partition(graph, edge_list, read_dgl_cut(cut, edge_list), out, "dgl", overwrite=overwrite)
    print_table("Imported", rows_of_table(manifest, out))
