"""Write the graph folder (its files: docs/formats.md)."""

import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import scipy.sparse

from distgnn.datasets.array_files import read_json
from distgnn.datasets.checks import check_graph
from distgnn.datasets.fields import ARRAYS, SPLITS, TYPE_NAMES, GraphFields, Relation
from distgnn.datasets.typed import OF_RELATION, OF_TYPE, of_type, relation_starts, shown, type_ranges
from distgnn.errors import GraphFormatError, InputError
from distgnn.system.atomic import new_folder, sync_file

OF_TYPES = (*OF_TYPE.values(), *SPLITS)
OF_RELATIONS = ("edges", *OF_RELATION.values())
EDGE_FILES = ("edges.npy", "edges.csv", "edges.csv.gz", "edges.txt", "edges.txt.gz")


def graph_files(folder: Path) -> set[str]:
    """All files that a graph folder may hold, relative to it: `new_folder` replaces a folder of no others."""
    header = read_json(folder / "graph.json")
    if not {"num_nodes", "directed"} <= header.keys():
        raise GraphFormatError(f"{folder / 'graph.json'}: not the header of a graph folder")
    arrays = {f"{name}.npy" for name in ("labels", "feats", *ARRAYS, *SPLITS)}
    return {"graph.json", "feats.npz", *EDGE_FILES, *arrays, *typed_files(header)}


def write_folder(graph: GraphFields, folder: Path, overwrite: bool) -> Path:
    """Write a plain graph folder beside its final place and move it there when it is whole."""
    check_graph(graph)
    header = {**graph.notes, "name": graph.name, "num_nodes": int(graph.num_nodes), "directed": bool(graph.directed)}
    if graph.num_label_classes is not None:
        header["num_classes"] = int(graph.num_label_classes)
    header |= {} if graph.held_out else {"held_out": False}
    header |= {} if graph.arc_order == "listed" else {"arc_order": graph.arc_order}
    header |= {key: list(getattr(graph, key)) for key in TYPE_NAMES if getattr(graph, key)}
    arrays = {name: getattr(graph, name) for name in ("edges", "feats", "labels", *ARRAYS, *SPLITS)}
    if graph.types:
        header, arrays = header | typed_header(graph), typed_arrays(graph)
    with new_folder(folder, graph_files, overwrite) as partial:
        (partial / "graph.json").write_text(json.dumps(header, indent=1, default=str) + "\n", encoding="utf-8")
        for name, array in arrays.items():
            (partial / name).parent.mkdir(exist_ok=True)
            if scipy.sparse.issparse(array):
                scipy.sparse.save_npz(partial / f"{name}.npz", array.tocsr(), compressed=False)
            elif array is not None:
                np.save(partial / f"{name}.npy", array, allow_pickle=False)
        for path in filter(Path.is_file, partial.rglob("*")):
            sync_file(path)
    return folder


def folder_name(key: str | Relation) -> str:
    """Of a type or relation: never a path out of the graph folder."""
    name = quote(key if isinstance(key, str) else shown(key), safe="")
    return f"%2E{name[1:]}" if name.startswith(".") else name


def typed_files(header: dict[str, Any]) -> set[str]:
    """All files beside graph.json that the folder of a typed graph may hold; empty for a graph without types."""
    types, relations = typed_keys(Path("graph.json"), header) if "types" in header else ({}, [])
    names = [(folder_name(kind), (*OF_TYPES, "feats.npz")) for kind in types]
    names += [(folder_name(relation), OF_RELATIONS) for relation in relations]
    return {f"{place}/{name if '.' in name else f'{name}.npy'}" for place, files in names for name in files}


def typed_arrays(graph: GraphFields) -> dict[str, Any]:
    """File, relative to the folder and without its end -> array, of a typed graph."""
    found: dict[str, Any] = {}
    places = [*map(folder_name, graph.types), *map(folder_name, graph.relations)]
    if len(set(places)) != len(places):
        raise InputError(f"graph {graph.name!r}: a type and a relation would have one folder: rename one of them")
    for kind in graph.types:
        one = of_type(graph, kind)
        found |= {
            f"{folder_name(kind)}/{name}": getattr(one, name) for name in OF_TYPES if getattr(one, name) is not None
        }
    bounds, ranges = relation_starts(graph), type_ranges(graph)
    for number, relation in enumerate(graph.relations):
        place, first = folder_name(relation), [ranges[relation[0]][0], ranges[relation[2]][0]]
        found[f"{place}/edges"] = np.asarray(graph.edges[bounds[number] : bounds[number + 1]]) - first
        columns = graph.relation_columns.get(relation, {})
        found |= {f"{place}/{OF_RELATION[name]}": column for name, column in columns.items()}
    return found


def typed_header(graph: GraphFields) -> dict[str, Any]:
    types = {kind: int(count) for kind, count in zip(graph.types, graph.type_counts, strict=True)}
    classes = {"type_classes": graph.type_classes} if graph.type_classes else {}
    return {"types": types, "relations": [list(one) for one in graph.relations], **classes} if types else {}


def typed_keys(path: Path, header: dict[str, Any]) -> tuple[dict[str, int], list[Relation]]:
    """Types with their counts, and relations."""
    types, relations = header["types"], header.get("relations")
    if not isinstance(types, dict) or not all(type(n) is int and n >= 0 for n in types.values()):
        raise GraphFormatError(f"{path}: 'types' must be names of types with numbers of vertices, found {types!r}")
    triples: list[Any] = relations if isinstance(relations, list) else [None]
    if not all(isinstance(one, list) and len(one) == 3 and all(isinstance(w, str) for w in one) for one in triples):
        raise GraphFormatError(f"{path}: 'relations' must be a list of [source type, name, target type]")
    classes = header.get("type_classes", {})
    good = isinstance(classes, dict) and all(
        type(known) is int or (isinstance(known, list) and all(isinstance(name, str) for name in known))
        for known in classes.values()
    )
    if not good:
        raise GraphFormatError(f"{path}: 'type_classes' must be numbers of classes, or their names, by type")
    return types, [(one[0], one[1], one[2]) for one in triples]
