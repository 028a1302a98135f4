"""Write the plain graph folder (its files: `distgnn.datasets.formats.folder`)."""

import json
from pathlib import Path

import numpy as np
import scipy.sparse

from distgnn.datasets.array_files import read_json
from distgnn.datasets.checks import check_graph
from distgnn.datasets.fields import ARRAYS, SPLITS, TYPE_NAMES, GraphFields
from distgnn.errors import GraphFormatError
from distgnn.system.atomic import new_folder, sync_file

EDGE_FILES = ("edges.npy", "edges.csv", "edges.csv.gz", "edges.txt", "edges.txt.gz")


def graph_files(folder: Path) -> set[str]:
    """All files that a graph folder may hold, relative to it: `new_folder` replaces a folder of no others."""
    if not {"num_nodes", "directed"} <= read_json(folder / "graph.json").keys():
        raise GraphFormatError(f"{folder / 'graph.json'}: not the header of a graph folder")
    arrays = {f"{name}.npy" for name in ("labels", "feats", *ARRAYS, *SPLITS)}
    return {"graph.json", "feats.npz", *EDGE_FILES, *arrays}


def write_folder(graph: GraphFields, folder: Path, overwrite: bool) -> Path:
    """Write a plain graph folder beside its final place and move it there when it is whole."""
    check_graph(graph)
    header = {**graph.notes, "name": graph.name, "num_nodes": int(graph.num_nodes), "directed": bool(graph.directed)}
    if graph.num_label_classes is not None:
        header["num_classes"] = int(graph.num_label_classes)
    header |= {} if graph.held_out else {"held_out": False}
    header |= {} if graph.arc_order == "listed" else {"arc_order": graph.arc_order}
    header |= {key: list(getattr(graph, key)) for key in TYPE_NAMES if getattr(graph, key)}
    with new_folder(folder, graph_files, overwrite) as partial:
        (partial / "graph.json").write_text(json.dumps(header, indent=1, default=str) + "\n", encoding="utf-8")
        for name in ("edges", "feats", "labels", *ARRAYS, *SPLITS):
            array = getattr(graph, name)
            if scipy.sparse.issparse(array):
                scipy.sparse.save_npz(partial / f"{name}.npz", array.tocsr(), compressed=False)
            elif array is not None:
                np.save(partial / f"{name}.npy", array, allow_pickle=False)
        for path in partial.iterdir():
            sync_file(path)
    return folder
