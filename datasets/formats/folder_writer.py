"""Write the plain graph folder (its files: `distgnn.datasets.formats.folder`)."""

import json
from pathlib import Path

import numpy as np
import scipy.sparse

from distgnn.datasets.checks import check_graph
from distgnn.datasets.fields import ARRAYS, SPLITS, TYPE_NAMES, GraphFields
from distgnn.system.atomic import new_folder, sync_file


def write_folder(graph: GraphFields, folder: Path, overwrite: bool) -> Path:
    """Write a plain graph folder beside its final place and move it there when it is whole."""
    check_graph(graph)
    with new_folder(folder, "graph.json", overwrite) as partial:
        _write_arrays(graph, partial)
        for path in partial.iterdir():
            sync_file(path)
    return folder


def _write_arrays(graph: GraphFields, folder: Path) -> None:
    header = {**graph.notes, "name": graph.name, "num_nodes": int(graph.num_nodes), "directed": bool(graph.directed)}
    if graph.num_label_classes is not None:
        header["num_classes"] = int(graph.num_label_classes)
    header |= {key: list(getattr(graph, key)) for key in TYPE_NAMES if getattr(graph, key)}
    (folder / "graph.json").write_text(json.dumps(header, indent=1, default=str) + "\n", encoding="utf-8")
    for name in ("edges", "labels", *ARRAYS, *SPLITS):
        array = getattr(graph, name)
        if array is not None:
            np.save(folder / f"{name}.npy", array, allow_pickle=False)
    if scipy.sparse.issparse(graph.feats):
        scipy.sparse.save_npz(folder / "feats.npz", graph.feats.tocsr(), compressed=False)
    elif graph.feats is not None:
        np.save(folder / "feats.npy", graph.feats, allow_pickle=False)
