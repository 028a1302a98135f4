"""`distgnn predict`: logits or classes of every vertex, in the original order, with a run's best weights."""

import sys

import typer

from distgnn.cli.display import print_table


def register(app: typer.Typer) -> None:
    app.command()(predict)


def predict(
    run: str = typer.Argument(help="Run folder."),
    parts: str = typer.Argument(help="Partition folder of the same graph, with any number of parts."),
    out: str = typer.Option(..., help="File to write: float32 logits [N, C] as .npy."),
    classes: bool = typer.Option(False, help="Write the most likely class of each vertex instead, int64 [N]."),
    threads: int | None = typer.Option(None, help="Threads per rank [default: cores / ranks]."),
    overwrite: bool = typer.Option(False, help="Replace an existing file."),
    quiet: bool = typer.Option(False, help="Print nothing."),
) -> None:
    """Predict every vertex with the best weights of a run."""
    from distgnn.cli.ranks import checked_together, run_on_ranks
    from distgnn.errors import InputError
    from distgnn.partition import read_manifest
    from distgnn.train.run_folder import exists, read_config

    with checked_together():
        settings, manifest = read_config(run), read_manifest(parts)
        if exists(out) and not overwrite:
            raise InputError(f"{out} exists: choose another --out, or add --overwrite to replace it")
    code = run_on_ranks(sys.argv[1:], manifest["num_parts"], threads)
    if code is not None:
        raise typer.Exit(code)
    rank = _predict_on_this_rank(run, settings, parts, out, classes)
    if rank == 0 and not quiet:
        kind = "classes" if classes else "logits"
        print_table("Predicted", [(kind, out), ("vertices", f"{manifest['num_nodes']:,}")])


def _predict_on_this_rank(run: str, settings: dict, parts: str, out: str, classes: bool) -> int:
    import torch

    from distgnn.comm import raise_together
    from distgnn.load import load
    from distgnn.nn import build_model
    from distgnn.train import load_best, write_predictions
    from distgnn.train.run_folder import model_config

    graph = load(parts, dtype=settings["run"]["dtype"])
    with raise_together(graph.comm):
        network = build_model(model_config(run, settings), graph.num_feats, graph.num_classes).to(graph.dtype)
        load_best(run, network)
    network.eval()
    with torch.no_grad():
        logits = network(graph, graph.feats)
    write_predictions(graph, logits, out, classes)
    return graph.rank
