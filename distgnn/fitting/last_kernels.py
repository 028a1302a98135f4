"""A program that compiles the kernels of a training step from its end, while a rank compiles them from its beginning.

It needs kernels only, no torch and no MPI, so it is at work within a second (partition/ahead.py).
"""

import sys
from typing import Any

import numpy as np

from distgnn import kernels
from distgnn.config import Settings
from distgnn.kernels.check.checked import unchecked
from distgnn.kernels.runtime.threads import edge_parts
from distgnn.partition.ahead import end_with_parent

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


def compile_last_kernels(name: str, norm: str, in_feats: int, hidden: int, classes: int) -> None:
    """Call the kernels of one step of a model in float32 on a few rows, the last one of the step first."""
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

    def product(width: int, wanted: int) -> None:
        kernels.product(rows(width), rows(wanted, width), rows(width), rows(wanted, width))

    rest: dict[str, Any] = {"p": 0.5, "row_ids": ids}
    bias, pair = rows(hidden)[0], (rows(hidden)[0], rows(hidden)[0])
    with unchecked():
        kernels.inner_product(rows(in_feats), rows(hidden))
        kernels.spmm(indptr, indices, rows(hidden), **backward)
        if norm == "layer":
            stats = {"bias": bias, "norm": pair, "stats": rows(2)}
            kernels.activate_backward(rows(hidden), None, rows(hidden), **stats, **rest)
        else:
            kernels.activate_backward(rows(hidden), rows(hidden), **rest)
        product(classes, hidden)
        kernels.inner_product(rows(hidden), rows(classes))
        kernels.spmm(indptr, indices, rows(classes), **backward)
        kernels.cross_entropy_backward(rows(classes), labels, chosen, rows(2), 1.0)
        kernels.cross_entropy(rows(classes), labels, chosen)
        kernels.activate(rows(classes), rows(classes)[0], activation="none")
        kernels.spmm(indptr, indices, rows(classes), **forward)
        product(hidden, classes)
        kernels.spmm(indptr, indices, rows(hidden), **forward)
        kernels.activate(rows(hidden), bias, pair if norm == "layer" else None, **rest)
        product(in_feats, hidden)
        kernels.spmm(indptr, indices, rows(in_feats), **forward)
        edge_parts(indptr, 2)


if __name__ == "__main__":
    end_with_parent(sys.argv[1])
    kernels.set_num_threads(1)
    _folder, name, norm, *sizes = sys.argv[1:]
    in_feats, hidden, classes = map(int, sizes)
    compile_last_kernels(name, norm, in_feats, hidden, classes)
