"""What each rank of `distgnn train` and of `dg.fit` does: one run, or several with different seeds or folds."""

import gc
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from distgnn.config import Settings, TrainConfig
from distgnn.config.extras import search_of
from distgnn.config.settings import describe_data, read_sections
from distgnn.fitting.progress import compiling
from distgnn.system.launch import import_mpi, under_mpi
from distgnn.system.output import say
from distgnn.train.run.within_memory import MemoryLimit

AVERAGED = (  # over seeds, and further metrics of a task
    "test_metric", "valid_metric", "test_accuracy", "valid_accuracy", "final_loss", "epoch_seconds_median",
)  # fmt: skip


@dataclass(frozen=True)
class Job:
    """What ranks are given.

    Args:
        model: a packed module, or a packed function of the graph that makes one; None: the one of the settings.
        trainer: objects for the Trainer; limit: of a rank's memory.
        folds: of labelled vertices; each is tested once, in a run for each fold.
        recipe, given: one that searches chooses settings that are not `given`.
        of_fit: a process that goes on afterwards may be the only rank; predicts: predictions are written into the run
        folder; line: said first.
    """

    parts: str
    manifest: dict[str, Any]
    settings: Settings
    model: bytes | None = None
    trainer: dict[str, Any] = field(default_factory=dict)
    limit: MemoryLimit = field(default_factory=MemoryLimit)
    debug: bool = False
    speak: bool = True
    folds: int = 0
    recipe: str | None = None
    given: set[str] = field(default_factory=set)
    of_fit: bool = False
    predicts: bool = False
    line: str = ""

    @property
    def by_name(self) -> bool:
        return self.model is None


@dataclass(frozen=True)
class Trained:
    """Args: made: what a function of the user's made, untrained and packed, on rank 0; None without one."""

    summary: dict[str, Any]
    rank: int
    made: bytes | None = None


def fit_job(job: Job) -> bytes | None:
    """What `dg.fit` calls on each rank. Returns: as `Trained.made`. Collective: yes."""
    from distgnn.fitting.user_model import seeded

    with seeded(job.settings.train.seed):
        return train_job(job).made


def train_job(job: Job, starting: float = 0.0) -> Trained:
    """Train on this rank, after a look at machines and memory. Collective: yes. Args: starting: see `start_limit`."""
    from distgnn.system.jobs.watchdog import start_limit

    with start_limit(starting):
        settings, lines = check_machines(job.parts, job.manifest, job.settings, job.limit, job.by_name)
    for line in filter(None, (job.line, *lines)) if job.speak and import_mpi().COMM_WORLD.rank == 0 else ():
        say(line, "" if not job.of_fit else "distgnn: ")
    job, search = replace(job, settings=settings), search_of(job.recipe)
    begun = settings.train.resume and Path(str(settings.train.run_dir), "config.toml").is_file()
    if search is None or begun:  # a run that was begun goes on with its own settings
        return train_on_this_rank(job)
    found: Trained = search(job)
    return found


def check_machines(
    parts: str, manifest: dict[str, Any], settings: Settings, limit: MemoryLimit, by_name: bool = True
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


def train_on_this_rank(job: Job) -> Trained:
    """Load this rank's part and train. Collective: yes."""
    from distgnn.comm import raise_together
    from distgnn.fitting.last_kernels import compile_kernels, last_kernels
    from distgnn.kernels.runtime.ahead import compiling_ahead

    settings, manifest = job.settings, job.manifest
    sections = settings.sections() | {"data": describe_data(job.parts, manifest)}
    if not job.by_name:
        del sections["model"]
    mpi = import_mpi()
    near = mpi.COMM_WORLD.Split_type(mpi.COMM_TYPE_SHARED)
    place, places = near.rank, near.size  # this rank's number on its machine, and how many share its kernels
    near.Free()
    words = last_kernels(settings, manifest) if job.by_name else []
    with compiling_ahead(words if place == 0 else []):
        from distgnn.graph.loader import load
        from distgnn.graph.tuning import of_job

        run, config = settings.run, replace(settings.train)
        plain = job.by_name and not job.trainer  # a user's code sees rows of all ranks
        options: dict[str, Any] = {"debug": job.debug, "say": None, "plain_tensors": plain}
        options["types"] = settings.knows_types(manifest["graph"], job.by_name)
        with raise_together(mpi.COMM_WORLD):
            file = Path(str(config.run_dir), "config.toml")
            begun = read_sections(file) if config.resume and file.is_file() else {}
            products = begun.get("data", {}).get("products")  # the choices of the run that is resumed
        with compiling(job.speak):
            graph = load(job.parts, run.algorithm, products=products, **settings.graph_options(), **options)
            if words and places > 1:
                compile_kernels(words, place, places)
        sections["data"]["products"] = of_job(graph.plain.tuning)
        if not job.of_fit or under_mpi():
            gc.freeze()  # what was imported and loaded stays: collections within training steps need not look at it
        if config.run_dir is None:
            config.run_dir = graph.comm.bcast(default_run_dir(job.parts, settings.model.name), root=0)
        train = _one_run if run.runs == 1 and not job.folds else _many_runs
        done = train(graph, replace(job, settings=replace(settings, train=config)), sections)
        return replace(done, summary=done.summary | {"run_dir": config.run_dir})


def _one_run(graph: Any, job: Job, sections: dict[str, Any]) -> Trained:
    from distgnn.fitting.user_model import make_model, predict, seed_all
    from distgnn.graph.cores import describe_binding
    from distgnn.nn import model_for
    from distgnn.train import Trainer

    settings, config, made = job.settings, job.settings.train, None
    seed_all(config.seed)
    if job.model is None:
        network = model_for(settings.model, graph, config.task)
    else:
        network, made = make_model(graph, job.model, settings.run.runs > 1, job.speak)
    quiet: Any = None if job.speak else lambda _: None
    trainer = Trainer(network, graph, config, describe=sections, say=quiet, on_epoch=quiet, **job.trainer)
    for line in (*describe_binding(graph.comm), graph.plain.schedule.caution(graph.plain.algorithm)):
        if line:
            trainer.say(line)
    with compiling(job.speak and graph.rank == 0):
        summary = trainer.fit().summary
    if job.predicts:
        predict(trainer)
    return Trained(summary, graph.rank, made)


def _many_runs(graph: Any, job: Job, sections: dict[str, Any]) -> Trained:
    from distgnn.comm import raise_together
    from distgnn.train.metrics import OF_TASKS
    from distgnn.train.run.run_folder import RunFolder

    config, outer = job.settings.train, None
    try:
        with raise_together(graph.comm):
            if graph.rank == 0:  # around the runs, each of which has a run folder inside
                describe = sections | {"train": config.as_dict()}
                outer = RunFolder(str(config.run_dir), describe, config.overwrite, config.resume)
        runs = list(_runs_inside(graph, job, sections))
        each = [one.summary for one in runs]
        seeds = list(range(config.seed, config.seed + job.settings.run.runs))
        summary = each[0] | ({"folds": job.folds} if job.folds else {"seeds": seeds})
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
    return replace(runs[0], summary=summary)


def _runs_inside(graph: Any, job: Job, sections: dict[str, Any]) -> Iterator[Trained]:
    """What each seed, or fold, gives, which has a run folder of its own. Collective: yes."""
    from distgnn.graph.task_rows import rows_of_task
    from distgnn.train.folds import fold_masks, folds_of

    settings, config, folds = job.settings, job.settings.train, job.folds
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
            for column in set(graph.plain.ndata) - columns:  # that a model has kept: others are for training now
                del graph.plain.ndata[column]
            rows.set_splits(fold_masks(fold_of, place, folds))
        one: TrainConfig = replace(config, seed=seed, run_dir=str(Path(str(config.run_dir)) / name))
        yield _one_run(graph, replace(job, settings=replace(settings, train=one)), sections)
