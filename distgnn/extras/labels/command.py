"""`distgnn correct-smooth`: Correct and Smooth of a run's logits."""

import json

import typer

from distgnn.cli.commands.predict import Overwrite, Parts, Run, check_request
from distgnn.cli.display import print_table
from distgnn.cli.options import AsJson, Silent, Threads, with_options
from distgnn.cli.places import checked_together, run_on_ranks
from distgnn.config.task import SPLITS
from distgnn.errors import InputError
from distgnn.extras.labels.extra import CorrectSmoothConfig
from distgnn.fitting.progress import compiling
from distgnn.system.units import human_share


@with_options
def correct_smooth(
    run: Run,
    parts: Parts,
    config: CorrectSmoothConfig,
    out: str | None = typer.Option(None, help="File to write: float32 scores [N, C] as .npy (default: none)."),
    classes: bool = typer.Option(False, help="Write the class with the largest score of each vertex, int64 [N]."),
    threads: Threads = None,
    overwrite: Overwrite = False,
    quiet: Silent = False,
    as_json: AsJson = False,
) -> None:
    """Correct and Smooth a run's best predictions (Huang et al., ICLR'21), exactly, on one rank per part."""
    from distgnn.extras.labels.correct_smooth import correct_and_smooth
    from distgnn.train.metrics import measure
    from distgnn.train.predict import write_best
    from distgnn.train.run.run_folder import run_task

    settings, manifest = check_request(run, parts, out, overwrite)
    with checked_together():
        config.check()
        if (task := run_task(settings)) != "node":
            raise InputError(f"{run} is of task {task}: Correct and Smooth is for task node")
        if manifest["graph"]["multilabel"] or not manifest["graph"]["train"]:
            raise InputError(f"{parts}: Correct and Smooth needs training vertices with one label each; there are none")
    run_on_ranks(manifest["num_parts"], threads)
    from distgnn.fitting.result import best_rows

    with compiling(not quiet and not as_json):
        graph, _, logits = best_rows(run, settings, parts, not quiet and not as_json)
        scores = correct_and_smooth(graph, logits, config)
    stages = {"before": logits, "after": scores}
    found = {
        stage: {split: measure(graph, rows, "accuracy", split) for split in SPLITS} for stage, rows in stages.items()
    }
    if out is not None:
        write_best(graph, None, scores, None, out, classes)
    if graph.rank == 0 and as_json:
        print(json.dumps(found, indent=1))
    elif graph.rank == 0 and not quiet:
        before, after = found["before"], found["after"]
        rows = [
            (f"{split} accuracy", f"{human_share(before[split])} -> {human_share(after[split])}")
            for split in SPLITS[1:]
        ]
        print_table("Corrected and smoothed", rows + ([("classes" if classes else "scores", out)] if out else []))
