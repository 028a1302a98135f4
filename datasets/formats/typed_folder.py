"""The graph folder of a typed graph: one folder for each type and each relation beside graph.json (docs/formats.md).

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


def only_file(folder: Path, names: tuple[str, ...]) -> Path | None:
    """The one file of these. Raises: GraphFormatError where there are two."""
    found = [folder / name for name in names if is_present(folder / name)]
    if len(found) > 1:
        raise GraphFormatError(f"{folder}: holds {' and '.join(path.name for path in found)}; keep one of them")
    return found[0] if found else None


def read_array(path: Path) -> Any:
    """A mapped array of a .npy file, or a CSR matrix."""
    return read_npy(path) if path.suffix == ".npy" else read_rows(path, as_csr=True)


def read_typed(folder: Path, header: dict[str, Any], findings: Findings) -> dict[str, Any]:
    """The fields of the graph of a folder whose graph.json names types."""
    types, relations = typed_keys(folder / "graph.json", header)
    tables: dict[Any, dict[str, Any]] = {kind: {"num_nodes": count} for kind, count in types.items()}
    tables |= {relation: {} for relation in relations}
    files: dict[str, Path] = {}
    for key, table in tables.items():
        place, names = folder / folder_name(key), OF_TYPES if isinstance(key, str) else OF_RELATIONS
        for name in names:
            path = only_file(place, (f"{name}.npy", *["feats.npz"] * (name == "feats")))
            if path is not None:
                table[name] = read_array(path)
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
