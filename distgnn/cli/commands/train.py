"""`distgnn train`: train on the ranks given, or start one rank per part; with `--ranks` cut the graph first."""

import json
import os
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from distgnn.cli.options import RANKS, AsJson, Quiet, Threads, given_options, in_panel, with_options
from distgnn.config import LaunchConfig, ModelConfig, RunConfig, Schedule, Settings, TrainConfig
from distgnn.config.extras import searches
from distgnn.config.option import option_name
from distgnn.config.recipes import for_graph
from distgnn.config.run import CHECKPOINT_EVERY
from distgnn.config.settings import check_names, check_same_graph, describe_graph, read_sections
from distgnn.config.task import LOWER_IS_BETTER, human_metric
from distgnn.config.together import rules_about
from distgnn.errors import InputError
from distgnn.system.jobs.restarts import without
from distgnn.system.launch import under_mpi
from distgnn.system.output import say
from distgnn.system.units import human_bytes, human_seconds, human_share

GROUPS = (ModelConfig, RunConfig, Schedule, TrainConfig, LaunchConfig)
TOGETHER = rules_about({option_name(field) for group in GROUPS for field in fields(group)})
RECIPE = "Options for this graph, as far as they are not given. fast: feature norm, optimiser and learning rate."
RECIPE += "".join(f" {name}: {text}" for name, text in searches().items())
CONFIG = "Take the options that are not given from this file, the config.toml of another run."
MEMORY = "Memory of a rank, such as 8GB (default: what is free). auto or auto:8GB: keep within it, by keeping all, "
MEMORY += "else --remat, else --offload."
CUT_FIRST = "Of a graph in place of a partition folder: cut it for this number of ranks first; the cut is kept."
EPILOG = "\n\n".join(["What does not go together is refused with one of these lines:", *TOGETHER])


@with_options
def train(
    context: typer.Context,
    parts: Annotated[str, typer.Argument(help="Partition folder; with --ranks also a graph, as partition takes it.")],
    model: ModelConfig,
    run: RunConfig,
    schedule: Schedule,
    training: TrainConfig,
    launching: LaunchConfig,
    recipe: str | None = in_panel("Training", None, RECIPE),
    config: str | None = in_panel("Run folder", None, CONFIG),
    memory: str | None = in_panel(RANKS, None, MEMORY),
    ranks: int | None = in_panel(RANKS, None, CUT_FIRST),
    threads: Threads = None,
    debug: bool = in_panel(RANKS, False, "Ranks agree on each exchange before it starts."),
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Train a model on a partition folder; starts mpiexec with one rank per part where none was started."""
    from distgnn.cli.places import checked_together
    from distgnn.fitting.on_rank import Job, train_job
    from distgnn.partition import read_manifest
    from distgnn.system.hosts import on_this_machine
    from distgnn.system.jobs.watchdog import start_limit
    from distgnn.train.run.estimate import check_memory_here
    from distgnn.train.run.within_memory import MemoryLimit

    if ranks is not None:
        parts = context.with_resource(cut_first(context, parts, ranks, training, not quiet))
    given = given_options(context)
    starting = training.timeout if launching.restarts and under_mpi() else 0
    with start_limit(starting), checked_together():
        manifest = read_manifest(parts)
        settings = _with_saved(Settings(training, model, run, schedule), given, config, manifest)
        # A file has every option
        settings, picked = for_graph(settings, given, recipe, manifest, by_name=True, defaults=config is None)
        settings = _checked(settings, launching)
        limit, num_ranks = MemoryLimit.parse(memory), manifest["num_parts"]
        if num_ranks > 1 and not under_mpi() and not limit.chooses and (limit.bytes or on_this_machine()):
            check_memory_here(manifest, settings.sections(), limit.bytes, num_ranks)
    _start_ranks(context, parts, settings, launching, num_ranks, threads)
    speak = not quiet and not as_json
    job = Job(parts, manifest, settings, limit=limit, debug=debug, speak=speak, recipe=recipe, given=given, line=picked)
    done = train_job(job, starting)
    if done.rank == 0 and as_json:
        print(json.dumps(done.summary, indent=1))
    elif done.rank == 0 and speak:
        _print_tables(done.summary, manifest)


def _checked(settings: Settings, launching: LaunchConfig) -> Settings:
    """The settings of this run; raises what can be refused before ranks are started."""
    from distgnn.train.run.run_folder import check_free

    launching.check(settings.schedule)
    if launching.restarts:
        settings = _with_checkpoints(settings)
    if settings.train.run_dir is not None:
        check_free(Path(settings.train.run_dir), settings.train.overwrite, settings.train.resume)
    return settings


def _start_ranks(
    context: typer.Context, parts: str, settings: Settings, launching: LaunchConfig, num_ranks: int, threads: int | None
) -> None:
    """On a rank return; elsewhere run this command on ranks, started again as often as asked, and exit as they did."""
    from distgnn.cli.places import SameRanks, ThisMachine, argument_place, run_on_ranks
    from distgnn.fitting.on_rank import default_run_dir
    from distgnn.system.jobs.restarts import with_run_dir

    if launching.restarts and not under_mpi():
        words = sys.argv[1:]
        if settings.train.run_dir is None:
            settings.train.run_dir = default_run_dir(parts, settings.model.name)
            words = with_run_dir(words, settings.train.run_dir)
        run_dir, place = Path(settings.train.run_dir), argument_place(context.command, words, parts)
        again = SameRanks.of(words, place, num_ranks, launching, run_dir)
        raise typer.Exit(again.run(ThisMachine(num_ranks, threads)))
    run_on_ranks(num_ranks, threads, graceful=True)


def _with_checkpoints(settings: Settings) -> Settings:
    """Settings of a run whose ranks may be started again: it needs checkpoints, and us as the launcher."""
    if under_mpi() and os.environ.get("DISTGNN_LAUNCHED") != "1":
        raise InputError("--restarts is for ranks that distgnn starts: elsewhere start the command again with --resume")
    every = settings.train.checkpoint_every or CHECKPOINT_EVERY
    return replace(settings, train=replace(settings.train, checkpoint_every=every))


def _with_saved(settings: Settings, given: set[str], config: str | None, manifest: dict[str, Any]) -> Settings:
    """What is not given on the command line is as in the file `config`, or as the resumed run was started."""
    if settings.train.resume:
        run_dir = settings.train.run_dir
        if run_dir is None:
            raise InputError("--resume needs --run-dir: which run?")
        if config is not None:
            raise InputError("--resume takes the settings of the run itself: leave --config out")
        file = Path(run_dir) / "config.toml"
        return settings.with_saved(read_sections(file), file, given) if file.is_file() else settings
    if config is None:
        return settings
    saved = read_sections(config)
    check_names(saved, config)
    check_same_graph(saved, describe_graph(manifest), config)
    return settings.with_saved(saved, config, given)


def _print_tables(summary: dict[str, Any], manifest: dict[str, Any]) -> None:
    from distgnn.cli.display import print_table

    print_table("Trained", closing_rows(summary, manifest))
    if "memory" in summary:
        from distgnn.graph.memory.ledger import REST, MemoryReport

        memory: dict[str, Any] = summary["memory"]
        blocks = {name: values for name, values in memory["blocks"].items() if name != REST}
        print_table("Memory at the peak", MemoryReport(memory["peak"], memory["anonymous"], blocks).rows())


def closing_rows(summary: dict[str, Any], manifest: dict[str, Any]) -> list[tuple[str, str]]:
    """The closing table; epochs count from 1, as the progress does, where files count from 0."""

    def metric(split: str) -> str:
        text = human_metric(summary["metric"], summary[f"{split}_metric"])
        std = summary.get(f"{split}_metric_std")
        scale = 1 if summary["metric"] in LOWER_IS_BETTER else 100
        return text if std is None else f"{text} ± {scale * std:.2f} over {len(summary['seeds'])} seeds"

    verified = []
    if "gradient_error" in summary:
        errors = f"gradient {summary['gradient_error']:.2e}, logits {summary['logits_error']:.2e}"
        verified.append(("off the exact step", f"{errors} (relative, last verified epoch)"))
    memory = human_bytes(max(summary["peak_rss_bytes"]))
    cut = f"{manifest['method']}, {manifest['num_parts']} parts"
    return [
        (f"test {summary['metric']}", f"{metric('test')} (at the best validation epoch, {summary['best_epoch'] + 1})"),
        (f"valid {summary['metric']}", metric("valid")),
        ("epoch", f"{human_seconds(summary['epoch_seconds_median'])} (median of {summary['epochs']})"),
        ("waiting", f"{human_share(summary['wait_share'])} of the time"),
        ("exchanged", f"{human_bytes(summary['sent_bytes_per_epoch'])} per epoch, all ranks together"),
        ("replication factor", f"{manifest['replication_factor']:.3f} ({cut})"),
        *verified,
        ("peak memory", f"{memory} on the largest of {summary['ranks']} ranks × {summary['threads']} threads"),
        ("run folder", summary["run_dir"]),
    ]


@contextmanager
def cut_first(context: Any, graph: str, ranks: int, training: TrainConfig, speak: bool) -> Iterator[str]:
    """The partition folder of the graph for these ranks; it stays while the block runs.

    The words of this command name it from now on, as ranks need them; `--ranks` is none of them any more.
    """
    from distgnn.cli.places import argument_place
    from distgnn.fitting.source import BY_LABELS, is_parts, parts_for
    from distgnn.partition import read_manifest

    if under_mpi():
        raise InputError("--ranks starts ranks: leave it out under mpiexec or srun, and give a partition folder")
    if ranks < 1:
        raise InputError(f"ranks is {ranks}: expected at least 1")
    words = without("--ranks", sys.argv[1:])
    place = argument_place(context.command, words, graph)
    if is_parts(graph):
        needed = read_manifest(graph)["num_parts"]
        if needed != ranks:
            raise InputError(f"{graph} is for {needed} ranks, not {ranks}: leave --ranks out, or give the graph itself")
        sys.argv[1:] = words
        yield graph
        return
    task = training.task if "task" in given_options(context) else BY_LABELS
    tell = say if speak else lambda line: None
    with parts_for(graph, ranks, None, training.seed, say=tell, quiet=not speak, task=task) as cut:
        first = f"distgnn partition {shlex.quote(graph)} --parts {ranks} --out parts{cut.options}"
        second = shlex.join(["distgnn", *words[:place], "parts", *words[place + 1 :]])
        if speak:
            print(f"distgnn: this stands for\n  {first}\n  {second}", file=sys.stderr, flush=True)
        sys.argv[1:] = [*words[:place], cut.folder, *words[place + 1 :]]
        yield cut.folder
