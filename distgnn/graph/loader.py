"""Loading one rank's part of a partition folder as the graph a model sees."""

import builtins
import inspect
import io
import logging
import os
import sys
from collections.abc import Callable, Collection, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import torch
from mpi4py import MPI

import distgnn
from distgnn import kernels
from distgnn.comm import abort_on_uncaught, check_same, raise_together
from distgnn.comm.ending.leaving import WatchedComm, end_quickly, watched
from distgnn.comm.ending.loop_watch import watch_to_the_end
from distgnn.config import Algorithm
from distgnn.config.cut import check_names
from distgnn.config.extras import attached
from distgnn.config.option import check_choice
from distgnn.config.schedule import Schedule
from distgnn.errors import RunError
from distgnn.graph.cores import choose_threads, describe_binding, spread_over_nodes
from distgnn.graph.dist_graph import DistGraph
from distgnn.graph.face.row_graph import with_rows
from distgnn.graph.face.typed_graph import TypedGraph
from distgnn.graph.part_arrays import leave_on_disk
from distgnn.graph.tuning import job_tuning
from distgnn.kernels.runtime.compile_line import compile_line, compile_line_from_now_on
from distgnn.ops.file_memory import check_folder
from distgnn.partition import load_part, read_manifest
from distgnn.system import output
from distgnn.system.hosts import check_tasks, several_tasks
from distgnn.system.jobs.own_rank import forget_segment, under_mpi
from distgnn.system.jobs.rank_log import note
from distgnn.system.launch import PRINT_VARIABLE
from distgnn.system.scripts.run_script import texts_hash_alike

OF_A_GRAPH = inspect.signature(DistGraph).parameters.keys() - {"local", "comm", "algorithm", "tuning", "schedule"}
OPTIONS = [*sorted(OF_A_GRAPH), *(one.name for one in fields(Schedule))]


OTHER_ORDER = (
    "note: ranks hash texts in different ways, so that a set of texts has another order on each: set PYTHONHASHSEED=0 "
    "before the ranks are started, or start them with `distgnn run`"
)


def say_on_stderr(text: str) -> None:
    output.say(text, "")


@note.during("loading")
def load(
    folder: str | Path,
    algorithm: str = "cd-0",
    comm: MPI.Comm | None = None,
    say: Callable[[str], None] | None = say_on_stderr,
    plain_tensors: bool = False,
    leave: Collection[str] = (),
    check_steps: bool = True,
    products: Mapping[str, int] | None = None,
    types: bool | None = None,
    **options: Any,
) -> DistGraph:
    """Load this rank's part of a partition folder.

    Collective: yes, over `comm` (default: all ranks).

    Args:
        algorithm: "cd-0" or "cd-r".
        say: called on rank 0 with one line on ranks, threads and cores, and with warnings; None: silent.
        plain_tensors: columns are ordinary tensors with this rank's rows, and what a script computes of them is this
            rank's; else they are rows of all ranks (`distgnn.rows`).
        leave: what `init` is not to set in this process, of `EFFECTS`; `EFFECTS` itself: all of it.
        check_steps: ranks compare what enters a step, and what meets rows of all ranks: numbers, tensors, draws,
            weights, settings. False: a script may make them differ.
        products: `data.products` of an earlier run's config.toml, to repeat its rounding; None: rank 0's quickest.
        types: of parts with types, see these; False: one vertex set; None: where tensors are not plain.
        options: further arguments of `DistGraph`: dtype, seed, feat_norm, inductive, cache_first, offload, debug; the
            fields of `Schedule`.

    Returns: a graph; of parts with types, one that has columns by type and relations (`data["paper"].x`).

    Raises:
        InputError: on every rank, for a DISTGNN_TIMEOUT that is no number of seconds, or a setting's old name.
        RunError: on every rank, where the rank count is not the number of parts or ranks see different partitions.
        PartitionFormatError: on every rank, where a file is missing or damaged.

    Example:
        >>> graph = dg.load("parts")
        >>> graph.feats.shape, int(graph.train_mask.sum())
        (torch.Size([60, 8]), 12)
    """
    comm = init(comm, leave, printing=plain_tensors)
    if isinstance(comm, WatchedComm) and comm.crew is not None:
        comm.crew.alike.wanted = check_steps
    with raise_together(comm):
        manifest, schedule = _checked(folder, algorithm, comm.size, options)
    check_same(comm, {"partition": manifest["sha256"]}, "give every rank the same partition folder")
    with compile_line(visible=comm.rank == 0):
        with raise_together(comm):
            part = load_part(folder, comm.rank)
        tuning = job_tuning(comm, len(part.blocks["owned_owned"].indices), products, options.get("dtype") == "bfloat16")
        typed = part.graph.get("types") and (not plain_tensors if types is None else types)
        part.feats = None if typed else part.feats
        graph = graph_kind(schedule)(part, comm, algorithm=algorithm, tuning=tuning, **options)
    leave_on_disk(part.arc_ids)  # read while the part was checked; needed by layers that work arc by arc only
    kernels.give_back_freed_memory()
    if say:
        _describe(comm, say)
    face = with_rows(graph) if typed or not plain_tensors else graph
    return TypedGraph(face) if typed else face  # type: ignore[return-value]


def _checked(folder: str | Path, algorithm: str, num_ranks: int, options: dict[str, Any]) -> tuple[Any, Schedule]:
    """(the manifest, the schedule among the options), or an error for what does not go together."""
    check_names(options, OPTIONS)
    manifest = read_manifest(folder)
    schedule = Schedule(**{one.name: options[one.name] for one in fields(Schedule) if one.name in options})
    schedule.check(Algorithm.parse(algorithm))
    check_folder(options.get("offload"))
    check_rank_count(folder, manifest["num_parts"], num_ranks)
    return manifest, schedule


def _describe(comm: MPI.Comm, say: Callable[[str], None]) -> None:
    """Lines on ranks and cores, and warnings. Collective: yes."""
    order = "" if texts_hash_alike(comm) else OTHER_ORDER
    for line in [*describe_binding(comm), *late_settings(), order]:
        if line and comm.rank == 0:
            say(line)


def graph_kind(schedule: Schedule) -> type[DistGraph]:
    """The class of graphs under a schedule: an extra's, where a setting of it is given."""
    return next(attached("graph", schedule), DistGraph)


EFFECTS = {  # of `init` on its process
    "errors": "an error that nobody catches ends all ranks",
    "watch": "a rank that leaves the others waiting, or hangs beyond DISTGNN_TIMEOUT, is named and ends the job",
    "threads": "torch and the kernels get this rank's share of the cores",
    "memory": "malloc gives large blocks back when they are freed; threads on several memory nodes fill them in turn",
    "compile": "a line says that kernels are compiled",
    "exit": "Python ends without a look for garbage",
    "output": "lines of ranks do not mix; with `distgnn run --print once` only rank 0 prints",
}


def init(comm: MPI.Comm | None = None, leave: Collection[str] = (), *, printing: bool = True) -> MPI.Comm:
    """Set up this process as a rank: all that `load`, which calls this, changes beyond its graph.

    Collective: yes, over `comm` (default: all ranks). Called again, it changes nothing.

    Args:
        leave: names of `EFFECTS` that are not wanted; printing: ranks but the first print, too, in any case.

    Returns: the communicator for graphs; it counts calls, where ranks are watched.

    Raises: InputError for an effect that there is not, and, on every rank, for a DISTGNN_TIMEOUT that is no number.

    Notes: says what it set to the logger "distgnn", as information. A graph on several ranks also makes a step of an
        optimiser on gradients that were not summed an error, and `import distgnn` has set GOMP_SPINCOUNT and
        THP_MEM_ALLOC_ENABLE, where torch was not imported before and you have not set them.

    Example:
        >>> comm = dg.init(leave=["memory", "output"])
        >>> graph = dg.load("parts", comm=comm, leave=["memory", "output"])
    """
    for name in leave:
        check_choice("leave", name, tuple(EFFECTS))
    comm, wanted = comm or MPI.COMM_WORLD, [name for name in EFFECTS if name not in leave]
    forget_segment()
    if "errors" in wanted:
        abort_on_uncaught(comm, alone=several_tasks() is None)
    if "watch" in wanted:
        comm = watched(comm)
        watch_to_the_end(comm)
    elif comm.size > 1:
        comm = WatchedComm(comm)  # its waits are known to a watchdog
    count = choose_threads(comm) if "threads" in wanted else kernels.get_num_threads()
    if "memory" in wanted:
        kernels.return_large_blocks()
        spread_over_nodes(count)
    if "threads" in wanted:
        set_threads(count)
    if "compile" in wanted:
        compile_line_from_now_on(visible=comm.rank == 0)
    if "exit" in wanted:
        end_quickly()
    if "output" in wanted:
        if comm.size > 1 and isinstance(sys.stdout, io.TextIOWrapper) and not sys.stdout.isatty():
            sys.stdout.reconfigure(line_buffering=True, write_through=False)
        if comm.rank and not printing and os.environ.get(PRINT_VARIABLE) == "once":
            sys.stdout = open(os.devnull, "w")
    copies = getattr(builtins.open, "copies", None)
    if copies is not None:
        copies.replace_below()
    if comm.rank == 0:
        logging.getLogger("distgnn").info("set in this process: %s", ", ".join(wanted) or "nothing")
    return comm


def late_settings() -> list[str]:
    """What is lost because torch was loaded before distgnn could choose its settings; empty where nothing is."""
    if not distgnn._torch_spins or torch.get_num_threads() == 1:
        return []
    return [
        "note: torch was imported before distgnn, and its idle threads keep the kernels' cores busy: import distgnn "
        "first, or set GOMP_SPINCOUNT=1000 THP_MEM_ALLOC_ENABLE=1"
    ]


def check_rank_count(folder: str | Path, num_parts: int, num_ranks: int) -> None:
    """One rank per part, or a RunError that says what to start."""
    if num_parts != num_ranks:
        if num_ranks == 1 and not under_mpi():
            check_tasks()
            raise RunError(
                f"{folder} has {num_parts} parts, and this is one process without ranks: start a script "
                f"with `distgnn run -n {num_parts} SCRIPT.py`; in a notebook, load a folder of one part (distgnn "
                "partition --parts 1)"
            )
        raise RunError(
            f"{folder} has {num_parts} parts but {num_ranks} ranks are running: start {num_parts} ranks, or partition "
            f"again with --parts {num_ranks}"
        )


def use_threads(count: int) -> None:
    """Give torch and the kernels the same number of threads, and set their memory up as `init` does."""
    kernels.return_large_blocks()
    spread_over_nodes(count)
    set_threads(count)


def set_threads(count: int) -> None:
    torch.set_num_threads(count)
    kernels.set_num_threads(count)
