"""The kernels of a training step: processes of a machine share the work of compiling them.

Where ranks share a machine, each calls all kernels before its first step, and no two begin at the same one. Where one
rank has several threads, a second process takes them from the end of the step. That process needs kernels only, no
torch and no MPI, so it is at work within a second (ahead.py).
"""

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from distgnn import kernels
from distgnn.config import Settings, num_threads
from distgnn.kernels.runtime.ahead import end_with_parent
from distgnn.kernels.runtime.threads import edge_parts

LAST_KERNELS = "distgnn.fitting.last_kernels"
KNOWN = ("sage", "gcn")


def last_kernels(settings: Settings, manifest: dict[str, Any]) -> list[str]:
    """The words that start the program for a run; none where it does not know the kernels of the run."""
    model, graph = settings.model, manifest["graph"]
    plain = settings.run.dtype == "float32" and not graph["sparse_feats"] and not graph["multilabel"]
    if not plain or model.name not in KNOWN or model.norm not in ("layer", "none") or settings.train.task != "node":
        return []
    sizes = graph["num_feats"], model.hidden_feats, graph["num_classes"]
    return [LAST_KERNELS, model.name, model.norm, *map(str, sizes)]


def compile_kernels(words: list[str], place: int, places: int) -> None:
    """Call the kernels of one step of a model in float32 on a few rows, each once.

    Args: words: of `last_kernels`. place, places: this rank's number on its machine, and how many there are. Even ones
        go forward, odd ones backward, each from another place of the step.
    """
    _module, name, norm, *sizes = words
    in_feats, hidden, classes = map(int, sizes)
    steps = _steps(name, norm, in_feats, hidden, classes, several=places > 1)
    begin = len(steps) * place // places
    steps = steps[begin:] + steps[:begin]
    for step in steps if place % 2 == 0 else reversed(steps):
        step()


def _steps(name: str, norm: str, in_feats: int, hidden: int, classes: int, several: bool) -> list[Callable[[], Any]]:
    """Calls of the kernels of a step, in its order; of `several` ranks: with exchanges."""
    size = 8
    indptr, indices = np.arange(size + 1), np.arange(size, dtype=np.int32)
    ids, scale, labels = np.arange(size), np.ones(size, np.float32), np.zeros(size, np.int64)
    of_source: dict[str, Any] = {"source_scale": scale}
    of_target: dict[str, Any] = {"target_scale": scale}
    chosen, symmetric = np.ones(size, bool), name == "gcn"
    forward = of_source | of_target if symmetric else of_target
    backward = of_source | of_target if symmetric else of_source

    def rows(width: int, count: int = size) -> np.ndarray:
        return np.ones((count, width), np.float32)

    rest: dict[str, Any] = {"p": 0.5, "row_ids": ids}
    bias, pair = rows(hidden)[0], (rows(hidden)[0], rows(hidden)[0])

    def aggregation(width: int, scales: dict[str, Any]) -> list[Callable[[], Any]]:
        exchange = [
            lambda: kernels.pack_rows(rows(width), indices),
            lambda: kernels.add_rows(rows(width), indices, rows(width)),
        ]
        return [lambda: kernels.spmm(indptr, indices, rows(width), **scales), *(exchange if several else [])]

    def product(width: int, wanted: int) -> Callable[[], Any]:
        return lambda: kernels.product(rows(width), rows(wanted, width), rows(width), rows(wanted, width))

    layer = norm == "layer"
    kept = (None, rows(hidden), bias, pair, rows(2)) if layer else (rows(hidden),)
    return [
        *([] if several and num_threads() == 1 else [lambda: edge_parts(indptr, 2)]),
        *aggregation(in_feats, forward),
        product(in_feats, hidden),
        lambda: kernels.activate(rows(hidden), bias, pair if layer else None, **rest),
        *aggregation(hidden, forward),
        product(hidden, classes),
        *aggregation(classes, forward),
        lambda: kernels.activate(rows(classes), rows(classes)[0], activation="none"),
        lambda: kernels.cross_entropy(rows(classes), labels, chosen),
        lambda: kernels.cross_entropy_backward(rows(classes), labels, chosen, rows(2), 1.0),
        lambda: kernels.spmm(indptr, indices, rows(classes), **backward),
        lambda: kernels.inner_product(rows(hidden), rows(classes)),
        product(classes, hidden),
        lambda: kernels.activate_backward(rows(hidden), *kept, **rest),
        lambda: kernels.spmm(indptr, indices, rows(hidden), **backward),
        lambda: kernels.inner_product(rows(in_feats), rows(hidden)),
    ]


if __name__ == "__main__":
    end_with_parent(sys.argv[1])
    compile_kernels(["", *sys.argv[2:]], 1, 1)
