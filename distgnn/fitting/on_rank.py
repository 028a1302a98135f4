"""What `distgnn train` does on each rank: one run, or several with different seeds or folds."""

import gc
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from distgnn.config import Settings, TrainConfig
from distgnn.config.extras import search_of
from distgnn.config.settings import describe_data, read_sections
from distgnn.fitting.progress import compiling, progress_bar
from distgnn.system.launch import import_mpi, under_mpi

if TYPE_CHECKING:
    from distgnn.train.run.within_memory import MemoryLimit

AVERAGED = (  # over seeds, and further metrics of a task
    "test_metric", "valid_metric", "test_accuracy", "valid_accuracy", "final_loss", "epoch_seconds_median",
)  # fmt: skip


def check_machines(
    parts: str, manifest: dict[str, Any], settings: Settings, limit: "MemoryLimit", by_name: bool = True
) -> tuple[Settings, list[str]]:
    """Before anything is loaded: program, ranks, memory (of a model by name), and the disk of `--offload`.

    Returns: the settings, with what `--memory auto` chooses, and what is to be said. Collective.
    """
    from distgnn.comm import raise_together
    from distgnn.graph.loader import check_rank_count
    from distgnn.train.run.estimate import check_memory
    from distgnn.train.run.machine import check_program
    from distgnn.train.run.within_memory import check_disk, choose

    comm = import_mpi().COMM_WORLD
    check_program(comm)
    with raise_together(comm):
        check_rank_count(str(Path(parts).resolve()), manifest["num_parts"], comm.size)
    chosen = left_out = ""
    if by_name:
        left_out = settings.weights_left_out(manifest["graph"])
        settings, chosen = choose(comm, manifest, settings, limit)
        check_memory(comm, manifest, settings.sections(), limit.bytes)
    lines = [chosen, left_out, check_disk(comm, manifest, settings, by_name)]
    return settings, [line for line in lines if line and comm.rank == 0]


def default_run_dir(parts: str, model: str) -> str:
    """The run folder of a run that was given none: another one every second."""
    return str(Path("runs") / f"{Path(parts).resolve().name}-{model}-{time.strftime('%Y%m%d-%H%M%S')}")


@dataclass(frozen=True)
class Own:
    """What a run of `dg.fit` has beside settings.

    Args:
        make_model: makes a user's model for a graph; None: the one that the settings name. trainer: further arguments
            of the Trainer; before: called with the seed of each run; after: called with its trainer at the end.
            Collective, all functions. folds: of labelled vertices; each is tested once, in a run for each fold.
    """

    make_model: Callable[[Any], Any] | None = None
    trainer: Mapping[str, Any] = field(default_factory=dict)
    before: Callable[[int], None] | None = None
    after: Callable[[Any], None] | None = None
    folds: int = 0


def train_on_this_rank(
    parts: str, manifest: dict[str, Any], settings: Settings, debug: bool, speak: bool, own: Own | None = None
) -> tuple[dict[str, Any], int]:
    """Load this rank's part and train; returns the summary and the rank. Collective: yes.

    Args: own: of a process that goes on afterwards.
    """
    from distgnn.comm import raise_together
    from distgnn.fitting.last_kernels import compile_kernels, last_kernels
    from distgnn.kernels.runtime.ahead import compiling_ahead

    by_name = own is None or own.make_model is None
    sections = settings.sections() | {"data": describe_data(parts, manifest)}
    if not by_name:
        del sections["model"]
    mpi = import_mpi()
    near = mpi.COMM_WORLD.Split_type(mpi.COMM_TYPE_SHARED)
    place, places = near.rank, near.size  # this rank's number on its machine, and how many share its kernels
    near.Free()
    words = last_kernels(settings, manifest) if by_name else []
    with compiling_ahead(words if place == 0 else []):
        from distgnn.graph.loader import load
        from distgnn.graph.tuning import of_job

        run, config = settings.run, replace(settings.train)
        plain = by_name and not (own and own.trainer)  # a user's code sees rows of all ranks
        options: dict[str, Any] = {"debug": debug, "say": None, "plain_tensors": plain}
        options["types"] = settings.knows_types(manifest["graph"], by_name)
        with raise_together(mpi.COMM_WORLD):
            products = _products_before(config)
        with compiling(speak):
            graph = load(parts, run.algorithm, products=products, **settings.graph_options(), **options)
            if words and places > 1:
                compile_kernels(words, place, places)
        sections["data"]["products"] = of_job(graph.plain.tuning)
        if own is None or under_mpi():
            gc.freeze()  # what was imported and loaded stays: collections within training steps need not look at it
        if config.run_dir is None:
            config.run_dir = graph.comm.bcast(default_run_dir(parts, settings.model.name), root=0)
        own = own or Own()
        train = _one_run if run.runs == 1 and not own.folds else _many_runs
        summary = train(graph, replace(settings, train=config), sections, speak, own)
        return summary | {"run_dir": config.run_dir}, graph.rank


def train_by_recipe(
    recipe: str | None, given: set[str], parts: str, manifest: dict[str, Any], settings: Settings, *how: Any
) -> tuple[dict[str, Any], int]:
    """`train_on_this_rank`, or what a recipe does that searches: settings that are not `given` are its choice.

    A run that was begun goes on with its own settings. Args: how: further arguments of `train_on_this_rank`.
    """
    search, config = search_of(recipe), settings.train
    if search is None or (config.resume and Path(str(config.run_dir), "config.toml").is_file()):
        return train_on_this_rank(parts, manifest, settings, *how)
    done: tuple[dict[str, Any], int] = search(given, parts, manifest, settings, *how)
    return done


def _products_before(config: TrainConfig) -> dict[str, int] | None:
    """The choices of products of the run that is resumed; None of a new run."""
    file = Path(str(config.run_dir), "config.toml")
    return read_sections(file).get("data", {}).get("products") if config.resume and file.is_file() else None


def _one_run(graph: Any, settings: Settings, sections: dict[str, Any], speak: bool, own: Own) -> dict[str, Any]:
    import torch

    from distgnn.graph.cores import describe_binding
    from distgnn.nn import model_for
    from distgnn.train import Trainer
    from distgnn.train.run.loggers import EpochText

    config = settings.train
    torch.manual_seed(config.seed)
    if own.before is not None:
        own.before(config.seed)
    network = model_for(settings.model, graph, config.task) if own.make_model is None else own.make_model(graph)
    say = None if speak else lambda text: None
    trainer = Trainer(network, graph, config, describe=sections, say=say, **own.trainer)
    for line in (*describe_binding(graph.comm), graph.plain.schedule.caution(graph.plain.algorithm)):
        if line:
            trainer.say(line)
    bar = speak and graph.rank == 0 and "console" in config.loggers
    title = "epoch" if settings.run.runs == 1 and not own.folds else f"{Path(str(config.run_dir)).name}, epoch"
    words = EpochText(trainer.best_by, trainer.metric)
    with progress_bar(title, config.epochs, visible=bar) as advance:
        trainer.on_epoch = lambda record: advance(words.of(record), record["epoch"] + 1)
        summary = trainer.fit().summary
    if own.after is not None:
        own.after(trainer)
    return summary


def _many_runs(graph: Any, settings: Settings, sections: dict[str, Any], speak: bool, own: Own) -> dict[str, Any]:
    from distgnn.comm import raise_together
    from distgnn.train.metrics import OF_TASKS
    from distgnn.train.run.run_folder import RunFolder

    config, outer = settings.train, None
    try:
        with raise_together(graph.comm):
            if graph.rank == 0:  # around the runs, each of which has a run folder inside
                describe = sections | {"train": config.as_dict()}
                outer = RunFolder(str(config.run_dir), describe, config.overwrite, config.resume)
        each = list(_runs_inside(graph, settings, sections, speak, own))
        folds, seeds = own.folds, range(config.seed, config.seed + settings.run.runs)
        summary = each[0] | ({"folds": folds} if folds else {"seeds": list(seeds)})
        for name in (*AVERAGED, *(name for name in OF_TASKS if name in each[0])):
            values = [one[name] for one in each if one.get(name) is not None]
            if values:
                summary[name] = statistics.fmean(values)
                summary[f"{name}_std"] = statistics.stdev(values) if len(values) > 1 else 0.0
        with raise_together(graph.comm):
            if outer is not None:
                outer.finish(summary)
    finally:
        if outer is not None:
            outer.close()
    return summary


def _runs_inside(
    graph: Any, settings: Settings, sections: dict[str, Any], speak: bool, own: Own
) -> Iterator[dict[str, Any]]:
    """The summary of each seed, or fold, which has a run folder of its own. Collective: yes."""
    from distgnn.graph.task_rows import rows_of_task
    from distgnn.train.folds import fold_masks, folds_of

    config, folds = settings.train, own.folds
    rows, columns = rows_of_task(graph, config.target), set(graph.plain.ndata)
    fold_of = folds_of(rows, folds, config.seed) if folds else None
    for place in range(folds or settings.run.runs):
        name, seed = f"fold-{place}", config.seed
        if place:
            graph.plain.exchanges.refill(0)  # late rows that are held are of the run before
        if fold_of is None:
            seed += place
            name = f"seed-{seed}"
        else:
            for name in set(graph.plain.ndata) - columns:  # that a model has kept: others are for training now
                del graph.plain.ndata[name]
            rows.set_splits(fold_masks(fold_of, place, folds))
        one: TrainConfig = replace(config, seed=seed, run_dir=str(Path(str(config.run_dir)) / name))
        yield _one_run(graph, replace(settings, train=one), sections, speak, own)
