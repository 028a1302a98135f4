"""`distgnn train GRAPH --ranks 2`: the cut comes first, from the cache or made, and the two commands are said."""

import shlex
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from distgnn.config import TrainConfig
from distgnn.errors import InputError
from distgnn.system.jobs.restarts import without
from distgnn.system.launch import under_mpi


@contextmanager
def cut_first(context: Any, graph: str, ranks: int, columns: int, training: TrainConfig, speak: bool) -> Iterator[str]:
    """The partition folder of the graph for so many ranks; it stays while the block runs.

    The words of this command name it from now on, as ranks need them; `--ranks` is none of them any more.

    Raises: InputError on a rank, or where the graph is a partition folder for other ranks.
    """
    from distgnn.cli.elastic import argument_place
    from distgnn.fitting.source import cut_of, is_parts
    from distgnn.partition import read_manifest

    if under_mpi():
        raise InputError("--ranks starts ranks: leave it out under mpiexec or srun, and give a partition folder")
    if ranks < 1 or ranks % max(columns, 1):
        raise InputError(f"ranks is {ranks}: expected at least 1, and a multiple of --columns")
    words = without("--ranks", sys.argv[1:])
    place = argument_place(context.command, words, graph)
    if is_parts(graph):
        needed = read_manifest(graph)["num_parts"] * columns
        if needed != ranks:
            raise InputError(f"{graph} is for {needed} ranks, not {ranks}: leave --ranks out, or give the graph itself")
        sys.argv[1:] = words
        yield graph
        return
    from distgnn.fitting.progress import phases

    def say(line: str) -> None:
        if speak:
            print(f"distgnn: {line}", file=sys.stderr, flush=True)

    with ExitStack() as stack:
        with phases(speak) as progress:
            shares = ranks // columns, None, None, training.seed
            kept = cut_of(graph, *shares, say=say, progress=progress, task=training.task)
            cut = stack.enter_context(kept)
        first = f"distgnn partition {shlex.quote(graph)} --parts {ranks // columns} --out parts{cut.options}"
        second = shlex.join(["distgnn", *words[:place], "parts", *words[place + 1 :]])
        say(f"this stands for\n  {first}\n  {second}")
        sys.argv[1:] = [*words[:place], cut.folder, *words[place + 1 :]]
        yield cut.folder
