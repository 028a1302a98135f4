"""The graph folder of a typed graph: one folder for each type and each relation beside graph.json.

    my-graph/
        graph.json                    "types": {"paper": 3, "author": 2}, "relations": [["author", "writes", "paper"]]
        paper/                        feats.npy (or feats.npz, scipy CSR)  labels.npy  node_values.npy  node_names.npy
                                      train.npy  valid.npy  test.npy       ids within the type, or masks
        author___writes___paper/      edges.npy [E, 2] in the ids of the two types  edge_weight.npy  edge_feats.npy

graph.json may also hold `type_classes`: type -> number of its classes, or their names. Names that are no folders' are
written as in addresses: `a/b` as a%2Fb.
"""

from pathlib import Path
from typing import Any

from distgnn.datasets.array_files import is_present, read_npy
from distgnn.datasets.files.matrix import read_rows
from distgnn.datasets.findings.findings import Findings
from distgnn.datasets.formats.folder_writer import OF_RELATIONS, OF_TYPES, folder_name, typed_keys
from distgnn.datasets.names.field_names import leave_out
from distgnn.datasets.objects.from_types import from_tables
from distgnn.datasets.typed import shown
from distgnn.errors import DistGNNError, GraphFormatError

OF_TYPED_HEADER = ("types", "relations", "type_classes")


def read_typed(folder: Path, header: dict[str, Any], findings: Findings) -> dict[str, Any]:
    """The fields of the graph of a folder whose graph.json names types."""
    types, relations = typed_keys(folder / "graph.json", header)
    tables: dict[Any, dict[str, Any]] = {kind: {"num_nodes": count} for kind, count in types.items()}
    tables |= {relation: {} for relation in relations}
    files: dict[str, Path] = {}
    for key, table in tables.items():
        place, names = folder / folder_name(key), OF_TYPES if isinstance(key, str) else OF_RELATIONS
        for name in names:
            path = place / f"{name}.npy"
            sparse = place / "feats.npz"
            if name == "feats" and is_present(sparse):
                if is_present(path):
                    raise GraphFormatError(f"{place}: holds feats.npy and feats.npz; keep one of them")
                table[name], path = read_rows(sparse, as_csr=True), sparse
            elif is_present(path):
                table[name] = read_npy(path)
            else:
                continue
            files[f"{key if isinstance(key, str) else shown(key)}:{name}"] = path
        known = {path.name for path in files.values() if path.parent == place}
        for path in sorted(place.iterdir()) if place.is_dir() else ():
            if path.name not in known:
                leave_out(findings, f"{place.name}/{path.name}", path, "not read")
    classes = {k: tuple(v) if isinstance(v, list) else v for k, v in header.get("type_classes", {}).items()}
    try:
        fields = from_tables(tables, {"type_classes": classes}, findings)
    except DistGNNError as error:
        raise GraphFormatError(f"{folder}: {error}") from error
    return fields | {"files": files}
