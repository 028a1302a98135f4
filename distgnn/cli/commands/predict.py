"""What a run predicts with its best weights: `distgnn predict`, and `distgnn correct-smooth` of its logits."""

import json
from typing import Annotated, Any

import typer

from distgnn.cli.display import print_table
from distgnn.cli.options import AsJson, Silent, Threads
from distgnn.cli.ranks import checked_together, run_on_ranks
from distgnn.config import TrainConfig
from distgnn.config.task import SPLITS, check_graph_for
from distgnn.errors import InputError
from distgnn.fitting.progress import compiling
from distgnn.system.regular_file import check_name
from distgnn.system.units import human_share

Run = Annotated[str, typer.Argument(help="Run folder.")]
Parts = Annotated[str, typer.Argument(help="Partition folder of the same graph, with any number of parts.")]
Overwrite = Annotated[bool, typer.Option(help="Replace an existing file.")]
ON_VERTICES = ("node", "regression")  # as train.predict has them, which is imported late


def predict(
    run: Run,
    parts: Parts,
    out: str = typer.Option(..., help="File to write: float32 logits [N, C] as .npy; of links scores [M]."),
    classes: bool = typer.Option(False, help="Write the most likely class of each vertex instead, int64 [N]."),
    threads: Threads = None,
    overwrite: Overwrite = False,
    quiet: Silent = False,
) -> None:
    """Predict every vertex, or the edges of the test split, with the best weights of a run."""
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
    from distgnn.train.predict import write_best
    from distgnn.train.run.run_folder import names_file

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
    from distgnn.partition import read_manifest
    from distgnn.train.run.run_folder import exists, model_config, names_file, read_config

    with checked_together():
        settings, manifest = read_config(run), read_manifest(parts)
        model_config(run, settings)  # a run of a script's own model is refused before ranks are started
        for file in () if out is None else (out, str(names_file(out))):
            check_name(file, ".npy")
            if exists(file) and not overwrite:
                raise InputError(f"{file} exists: choose another --out, or add --overwrite to replace it")
    return settings, manifest


def correct_smooth(
    run: Run,
    parts: Parts,
    out: str | None = typer.Option(None, help="File to write: float32 scores [N, C] as .npy (default: none)."),
    classes: bool = typer.Option(False, help="Write the class with the largest score of each vertex, int64 [N]."),
    correction_steps: int = typer.Option(50, help="Steps in which training errors are spread (0: do not correct)."),
    correction_alpha: float = typer.Option(0.979, help="Share of neighbours in each of them."),
    smoothing_steps: int = typer.Option(50, help="Steps in which labels are spread (0: do not smooth)."),
    smoothing_alpha: float = typer.Option(0.756, help="Share of neighbours in each of them."),
    scale: float | None = typer.Option(None, help="Factor of the spread error (default: by its size at each vertex)."),
    threads: Threads = None,
    overwrite: Overwrite = False,
    quiet: Silent = False,
    as_json: AsJson = False,
) -> None:
    """Correct and Smooth a run's best predictions (Huang et al., ICLR'21), exactly, on one rank per part."""
    from distgnn.train import write_predictions
    from distgnn.train.correct_smooth import CorrectSmoothConfig, correct_and_smooth
    from distgnn.train.metrics import measure
    from distgnn.train.run.run_folder import run_task

    config = CorrectSmoothConfig(correction_steps, correction_alpha, smoothing_steps, smoothing_alpha, scale)
    settings, manifest = check_request(run, parts, out, overwrite)
    with checked_together():
        config.check()
        if (task := run_task(settings)) != "node":
            raise InputError(f"{run} is of task {task}: Correct and Smooth is for task node")
        if manifest["graph"]["multilabel"] or not manifest["graph"]["train"]:
            raise InputError(f"{parts}: Correct and Smooth needs training vertices with one label each; there are none")
    run_on_ranks(manifest["num_parts"], threads)
    from distgnn.fitting.best_rows import best_rows

    with compiling(not quiet and not as_json):
        graph, _, logits = best_rows(run, settings, parts, not quiet and not as_json)
        scores = correct_and_smooth(graph, logits, config)
    stages = {"before": logits, "after": scores}
    found = {
        stage: {split: measure(graph, rows, "accuracy", split) for split in SPLITS} for stage, rows in stages.items()
    }
    if out is not None:
        write_predictions(graph, scores, out, classes)
    if graph.rank == 0 and as_json:
        print(json.dumps(found, indent=1))
    elif graph.rank == 0 and not quiet:
        before, after = found["before"], found["after"]
        rows = [
            (f"{split} accuracy", f"{human_share(before[split])} -> {human_share(after[split])}")
            for split in SPLITS[1:]
        ]
        print_table("Corrected and smoothed", rows + ([("classes" if classes else "scores", out)] if out else []))
