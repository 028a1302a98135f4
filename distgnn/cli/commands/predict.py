"""`distgnn predict`: logits or classes of every vertex, or of the test edges, with a run's best weights."""

from typing import Any

import typer

from distgnn.cli.display import print_table
from distgnn.cli.options import Threads
from distgnn.fitting.progress import compiling

ON_VERTICES = ("node", "regression")  # as train.predict has them, which is imported late


def predict(
    run: str = typer.Argument(help="Run folder."),
    parts: str = typer.Argument(help="Partition folder of the same graph, with any number of parts."),
    out: str = typer.Option(..., help="File to write: float32 logits [N, C] as .npy; of links scores [M]."),
    classes: bool = typer.Option(False, help="Write the most likely class of each vertex instead, int64 [N]."),
    threads: Threads = None,
    overwrite: bool = typer.Option(False, help="Replace an existing file."),
    quiet: bool = typer.Option(False, help="Print nothing."),
) -> None:
    """Predict every vertex, or the edges of the test split, with the best weights of a run."""
    from distgnn.cli.ranks import checked_together, run_on_ranks
    from distgnn.config import TrainConfig
    from distgnn.config.task import check_graph_for
    from distgnn.errors import InputError
    from distgnn.train.run.run_folder import run_task

    settings, manifest = check_request(run, parts, out, overwrite)
    task = run_task(settings)
    with checked_together():
        check_graph_for(task, manifest["graph"])
        if classes and task not in ("node", "edge"):
            raise InputError(f"--classes is for tasks node and edge: this run is of task {task}")
        if task not in ON_VERTICES and "test_edges" not in manifest["graph"]["edge_splits"]:
            raise InputError(f"{parts} has no test edges: there is nothing to predict")
    run_on_ranks(manifest["num_parts"], threads)
    from distgnn.fitting.best_rows import best_rows
    from distgnn.train.predict import names_file, write_best

    with compiling(not quiet):
        graph, network, scores = best_rows(run, settings, parts, not quiet and manifest["num_parts"] > 1)
        count, smoothed = write_best(graph, network, scores, run, TrainConfig(task=task), out, classes)
    if graph.rank == 0 and not quiet:
        kinds = {"node": "smoothed scores" if smoothed else "logits", "edge": "logits", "link": "scores"}
        kind = "classes" if classes else kinds.get(task, "values")
        rows = [(kind, out), ("vertices" if task in ON_VERTICES else "edges", f"{count:,}")]
        if graph.local.node_names is not None and task in ON_VERTICES:
            rows.append(("their names", str(names_file(out))))
        print_table("Predicted", rows)


def check_request(run: str, parts: str, out: str | None, overwrite: bool) -> tuple[dict[str, Any], dict[str, Any]]:
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
