"""Predictions and embeddings of a trained run, in the original order of vertices, or of the test edges.

Embeddings of a trained model: the rows that its last layer with weights is given.
"""

import contextlib
import os
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from distgnn.comm import raise_together
from distgnn.comm.sums import receive_array, send_array
from distgnn.config import TrainConfig
from distgnn.errors import InputError, on_all_ranks
from distgnn.ops.function import only_looks
from distgnn.partition.folder.manifest import names_of
from distgnn.rows import RowTensor
from distgnn.rows.align import in_space
from distgnn.system.atomic import check_name
from distgnn.train.run.run_folder import names_file
from distgnn.train.tasks import of_vertices, task_for


class LastLayer:
    """Watches a model from now on; `rows` after one call of it.

    Of the modules with weights that the model calls, the last one; a model that calls only one is looked into. No more
    than one input for each depth of modules is held.
    """

    def __init__(self, model: nn.Module):
        self._calls: list[tuple[int, Any]] = []  # by depth: calls within the one above, and what the last was given
        self._depth, self._model = 0, type(model).__name__
        for module in model.modules():
            if next(module.parameters(), None) is not None:
                module.register_forward_pre_hook(self._enter, with_kwargs=True)
                module.register_forward_hook(self._leave)

    @only_looks
    def _enter(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        count = self._calls[self._depth][0] if self._depth < len(self._calls) else 0
        del self._calls[self._depth :]
        self._calls.append((count + 1, _rows_among((*args, *kwargs.values()))))
        self._depth += 1

    @only_looks
    def _leave(self, module: nn.Module, args: Any, made: Any) -> None:
        self._depth -= 1

    def rows(self, graph: Any) -> torch.Tensor:
        """This rank's rows [O, D] of the vertices, before its last layer. Collective: yes."""
        depth = min(1, len(self._calls) - 1)
        while depth + 1 < len(self._calls) and self._calls[depth][0] == 1 and self._calls[depth + 1][0] > 1:
            depth += 1
        found = self._calls[depth][1] if self._calls else None
        if isinstance(found, RowTensor):
            space = graph.face.vertex_space
            fits = not found.row_dim and found.shape[0] == space.num_global
            found = in_space(found, space).inner if fits else None
        if found is None or len(found) < graph.num_owned:
            raise on_all_ranks(
                InputError(f"{self._model} has no last layer that is given a row of each vertex: it has no embeddings")
            )
        return found.detach()[: graph.num_owned]


def _rows_among(given: tuple[Any, ...]) -> Any:
    """The first argument that is rows of floats; of a pair, as PyG's layers take, those of the targets."""
    for one in given:
        one = one[-1] if isinstance(one, tuple) and one else one
        if isinstance(one, torch.Tensor) and one.is_floating_point() and one.dim() > 1:
            return one
    return None


ON_VERTICES = ("node", "regression")  # tasks
PIECE_BYTES = 64 << 20  # of rows that rank 0 receives


def write_best(
    graph: Any, model: Any, rows: torch.Tensor, config: TrainConfig | None, out: str, classes: bool = False
) -> int:
    """Write what a run predicts with its best weights, or embeddings, to a .npy file; returns how many rows.

    Where vertices have names and rows are of vertices, `names_file(out)` has the name of each row. Collective: yes.

    Args: rows: what the model gives, [O, C]; config: of the run, its task, or None: rows of vertices are written as
        they are; classes: write the most likely class of each vertex, or 0/1 [N, C] for multi-label graphs.
    Raises: InputError on every rank, where the file cannot be written; nothing is left behind.
    """
    task = None if config is None else config.task
    with torch.no_grad():
        made = of_vertices(graph, rows) if config is None else task_for(config, model, graph).predict(graph, rows)
    ids, found, count = made
    if classes:
        found = (found > 0).to(torch.int64) if task == "node" and graph.multilabel else found.argmax(1)
    write_rows(graph, ids, (found if classes else found.float()).numpy(), count, out)
    names = graph.local.node_names
    if names is not None and task in (None, *ON_VERTICES):
        write_names(graph, ids, names, count, out)
    elif graph.rank == 0:
        names_file(out).unlink(missing_ok=True)  # of an earlier answer
    return count


def write_names(graph: Any, ids: np.ndarray, names: np.ndarray, count: int, out: str) -> None:
    """Write what vertices are called beside their rows in `out`. Collective: yes."""
    write_rows(graph, ids, names, count, str(names_file(out)))
    if graph.rank == 0 and names.ndim == 2:  # bytes of texts
        target, texts = names_file(out), names_of(np.load(names_file(out)))
        np.save(f"{target}.partial.npy", texts, allow_pickle=False)
        os.replace(f"{target}.partial.npy", target)


def write_rows(graph: Any, ids: np.ndarray, rows: np.ndarray, num_rows: int, out: str) -> None:
    """Write the rows of all ranks to a .npy file, each at its id.

    Collective: yes; rank 0 receives a piece of one rank's rows at a time.

    Args: ids: int64 [n], places of this rank's `rows` [n, ...]; num_rows: over all ranks.
    """
    target, partial = Path(out), Path(out + ".partial")
    everything: np.memmap | None = None
    with raise_together(graph.comm):
        check_name(out, ".npy")
        if graph.rank == 0:
            if target.is_dir() or not target.parent.is_dir():
                raise InputError(f"cannot write predictions to {target}: expected a file name in an existing folder")
            everything = file_of_rows(partial, rows.dtype, (num_rows, *rows.shape[1:]), target)
    lengths, row_bytes = graph.comm.allgather(len(rows)), rows.itemsize * int(np.prod(rows.shape[1:]))
    step = max(1, PIECE_BYTES // max(1, row_bytes))
    if everything is None:
        send_array(graph.comm, np.ascontiguousarray(ids), 0)
        for first in range(0, len(rows), step):
            send_array(graph.comm, np.ascontiguousarray(rows[first : first + step]), 0)
        return
    everything[ids] = rows
    for rank in range(1, graph.num_ranks):
        places = np.empty(lengths[rank], ids.dtype)
        receive_array(graph.comm, places, rank)
        for first in range(0, lengths[rank], step):
            some = places[first : first + step]
            theirs = np.empty((len(some), *rows.shape[1:]), rows.dtype)
            receive_array(graph.comm, theirs, rank)
            everything[some] = theirs
    everything.flush()
    os.replace(partial, target)


def file_of_rows(path: Path, dtype: Any, shape: tuple[int, ...], target: Path | None = None) -> np.memmap:
    """A .npy file to be filled, all of whose blocks exist on disk; an InputError, of `target`, leaves none."""
    try:
        found = np.lib.format.open_memmap(path, mode="w+", dtype=dtype, shape=shape)
        with open(path, "r+b") as stream:
            os.posix_fallocate(stream.fileno(), 0, path.stat().st_size)
    except OSError as error:
        with contextlib.suppress(OSError):  # a read-only file system
            path.unlink(missing_ok=True)
        raise InputError(f"cannot write predictions to {target or path}: {error.strerror or error}") from error
    return found
