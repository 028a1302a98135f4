"""`distgnn predict`: logits or classes of every vertex, in the original order, with a run's best weights."""

import sys
from typing import Any

import typer

from distgnn.cli.display import compiling, print_table
from distgnn.cli.options import Threads


def register(app: typer.Typer) -> None:
    app.command()(predict)


def predict(
    run: str = typer.Argument(help="Run folder."),
    parts: str = typer.Argument(help="Partition folder of the same graph, with any number of parts."),
    out: str = typer.Option(..., help="File to write: float32 logits [N, C] as .npy."),
    classes: bool = typer.Option(False, help="Write the most likely class of each vertex instead, int64 [N]."),
    threads: Threads = None,
    overwrite: bool = typer.Option(False, help="Replace an existing file."),
    quiet: bool = typer.Option(False, help="Print nothing."),
) -> None:
    """Predict every vertex with the best weights of a run."""
    from distgnn.cli.ranks import run_on_ranks
    from distgnn.train import write_predictions

    settings, manifest = check_request(run, parts, out, overwrite)
    code = run_on_ranks(sys.argv[1:], manifest["num_parts"], threads)
    if code is not None:
        raise typer.Exit(code)
    with compiling(not quiet):
        graph, logits = best_logits(run, settings, parts, not quiet)
    write_predictions(graph, logits, out, classes)
    if graph.rank == 0 and not quiet:
        kind = "classes" if classes else "logits"
        print_table("Predicted", [(kind, out), ("vertices", f"{manifest['num_nodes']:,}")])


def check_request(run: str, parts: str, out: str | None, overwrite: bool) -> tuple[dict, dict]:
    """The run's settings and the partition's manifest; raises what can be refused before ranks are started."""
    from distgnn.cli.ranks import checked_together
    from distgnn.errors import InputError
    from distgnn.partition import read_manifest
    from distgnn.train.run.run_folder import exists, model_config, read_config

    with checked_together():
        settings, manifest = read_config(run), read_manifest(parts)
        model_config(run, settings)  # a run of a script's own model is refused before ranks are started
        if out is not None and exists(out) and not overwrite:
            raise InputError(f"{out} exists: choose another --out, or add --overwrite to replace it")
    return settings, manifest


def best_logits(run: str, settings: dict, parts: str, speak: bool) -> Any:
    """This rank's graph, and the logits of its owned rows [O, C] with the run's best weights. Collective: yes."""
    import torch

    from distgnn.comm import raise_together
    from distgnn.graph.loader import load, say_on_stderr
    from distgnn.nn import model_for
    from distgnn.train import load_best
    from distgnn.train.run.run_folder import model_config, run_dtype

    config = model_config(run, settings)
    say = say_on_stderr if speak else None
    graph = load(parts, dtype=run_dtype(run, settings), sparse_feats=config.takes_sparse_feats, say=say)
    with raise_together(graph.comm):
        network = model_for(config, graph).to(graph.weight_dtype)
        load_best(run, network)
    network.eval()
    with torch.no_grad():
        return graph, network(graph, graph.feats)
