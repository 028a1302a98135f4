"""What a run predicts with its best weights: `distgnn predict`."""

import importlib
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from distgnn.cli.display import print_table
from distgnn.cli.options import Silent, Threads, in_panel
from distgnn.cli.places import checked_together, run_on_ranks
from distgnn.config import TrainConfig
from distgnn.config.task import check_graph_for
from distgnn.errors import InputError
from distgnn.fitting.progress import compiling
from distgnn.system.atomic import check_name

Run = Annotated[str, typer.Argument(help="Run folder.")]
Parts = Annotated[str, typer.Argument(help="Partition folder of the same graph, with any number of parts.")]
Overwrite = Annotated[bool, typer.Option(help="Replace an existing file.")]
OWN = "A model of your own"
ON_VERTICES = ("node", "regression")  # as train.predict has them, which is imported late


def predict(
    run: Annotated[str, typer.Argument(help="Run folder; or FILE.py:FUNCTION, which makes a torch module.")],
    parts: Annotated[str, typer.Argument(help="Partition folder of the same graph; for FILE.py:FUNCTION any graph.")],
    out: str | None = typer.Option(
        None, help="File: rows [N, C] as .npy; a table in .csv, .tsv or .parquet; of FILE.py:FUNCTION also a folder."
    ),
    classes: bool = typer.Option(
        False,
        help="Write the most likely class of each vertex instead, int64 [N]. Tables of runs have it; of "
        "FILE.py:FUNCTION it says that rows are scores of classes.",
    ),
    embeddings: bool = typer.Option(False, help="Write the rows that the last layer is given instead, [N, D]."),
    weights: str | None = in_panel(OWN, None, "File of weights: .pt, .ckpt or .safetensors."),
    layers: str | None = in_panel(OWN, None, "Modules inside whose rows are wanted, too, with commas: convs.1."),
    pairs: str | None = in_panel(OWN, None, "File of pairs (.npy, table): write the scores of these links instead."),
    ranks: int | None = in_panel(OWN, None, "Processes (default: one for each socket, or part)."),
    offload: str | None = in_panel(OWN, None, "Folder of a disk where large rows wait, to save memory."),
    memory: str | None = in_panel(OWN, None, "Memory of a rank, beside mapped files, such as 8GB: kept, or refused."),
    changed: str | None = in_panel(
        OWN, None, "File of ids (a line each, or .npy): vertices that are others than in --before; compute only these."
    ),
    before: str | None = in_panel(OWN, None, "The earlier answer, .npy."),
    plan: bool = in_panel(OWN, False, "Only say what a rank would take: nothing is computed."),
    threads: Threads = None,
    overwrite: Overwrite = False,
    quiet: Silent = False,
) -> None:
    """Predict every vertex, or the edges of the test split: with a run's best weights, or a model trained elsewhere."""
    if out is None and not (plan and is_function(run)):
        raise InputError("Missing option '--out'.")
    own: dict[str, Any] = {"weights": weights, "layers": layers, "pairs": pairs, "ranks": ranks, "offload": offload}
    own |= {"memory": memory, "changed": changed, "before": before, "plan": plan or None}
    if is_function(run):
        from distgnn.datasets.files.kinds import read_column

        own["layers"] = tuple(one.strip() for one in layers.split(",")) if layers else ()
        own["changed"] = None if changed is None else read_column("changed", changed)
        own["plan"] = plan
        how = {"classes": classes, "embeddings": embeddings, "threads": threads}
        return _with_own_model(run, parts, out, overwrite, quiet, own | how)
    for name, value in own.items():
        if value is not None:
            raise InputError(f"--{name} is for FILE.py:FUNCTION: a run folder has its own model, a part for each rank")
    _with_run(run, parts, str(out), classes, embeddings, threads, overwrite, quiet)


def _with_run(
    run: str, parts: str, out: str, classes: bool, embeddings: bool, threads: int | None, overwrite: bool, quiet: bool
) -> None:
    from distgnn.predicting.row_files import TABLES, Target
    from distgnn.train.run.run_folder import run_task

    is_table = Path(out).suffix in TABLES
    settings, manifest = check_request(run, parts, None if is_table else out, overwrite)
    task = run_task(settings)
    with checked_together():
        target = Target(Path(out), overwrite, ("output",)) if is_table else None
        check_graph_for(task, manifest["graph"])
        if classes and (embeddings or task not in ("node", "edge")):
            why = "embeddings are of none" if embeddings else f"this run is of task {task}"
            raise InputError(f"--classes is for tasks node and edge: {why}")
        of_vertices = embeddings or task in ON_VERTICES
        if not of_vertices and "test_edges" not in manifest["graph"]["edge_splits"]:
            raise InputError(f"{parts} has no test edges: there is nothing to predict")
    run_on_ranks(manifest["num_parts"], threads)
    from distgnn.fitting.result import best_rows
    from distgnn.predicting.row_files import Classes, write_table
    from distgnn.train.predict import write_best

    def write(file: str) -> int:
        config = None if embeddings else TrainConfig(task=task)
        return write_best(graph, network, rows, config, file, classes and not is_table)

    def about() -> Classes | str:
        if embeddings or task not in ("node", "edge"):
            return "embedding" if embeddings else "score" if task == "link" else "value"
        return Classes.of_graph(manifest["graph"]) if task == "node" else Classes()

    speak = not quiet and manifest["num_parts"] > 1
    with compiling(not quiet):
        graph, network, rows = best_rows(run, settings, parts, speak, embeddings=embeddings)
        if target is None:
            count = write(out)
        else:
            count = write_table(graph, target, write, about(), "id" if of_vertices else "edge")
    if graph.rank == 0 and not quiet:
        kinds = {"node": "logits", "edge": "logits", "link": "scores"}
        kind = "embeddings" if embeddings else "classes" if classes else kinds.get(task, "values")
        _say_what(out, "table" if is_table else kind, count, of_vertices, graph.local.node_names is not None)


def _say_what(out: str, kind: str, count: int, of_vertices: bool, named: bool) -> None:
    from distgnn.train.run.run_folder import names_file

    shown = [(kind, out), ("vertices" if of_vertices else "edges", f"{count:,}")]
    if named and of_vertices and kind != "table":
        shown.append(("their names", str(names_file(out))))
    print_table("Predicted", shown)


def is_function(text: str) -> bool:
    """Is this FILE.py:FUNCTION?"""
    return text.rpartition(":")[0].endswith(".py")


def made_by(text: str) -> Any:
    """What the function FILE.py:FUNCTION gives. Raises: InputError where there is none."""
    file, _, name = text.rpartition(":")
    path = Path(file).resolve()
    if not path.is_file():
        raise InputError(f"{file}: there is no such file")
    from distgnn.train.users_model import own_faults

    sys.path.insert(0, str(path.parent))  # ranks import from there, too
    with own_faults():
        function = getattr(importlib.import_module(path.stem), name, None)
        if not callable(function):
            raise InputError(f"{file} has no function {name!r}")
        return function()


def _with_own_model(make: str, data: str, out: str | None, overwrite: bool, quiet: bool, how: dict[str, Any]) -> None:
    """Args: how: further arguments of `dg.predict`."""
    from distgnn.predicting.predict import predict

    found = predict(made_by(make), data, out=out, overwrite=overwrite, quiet=quiet, **how)
    if how["plan"]:
        print(found)
    elif not quiet:
        paths = found if isinstance(found, dict) else {"output": found}
        print_table("Predicted", [(name, str(path)) for name, path in paths.items()])


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
