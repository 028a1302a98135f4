"""The graph folder: how users bring a graph of their own. Its files: docs/formats.md.

Large arrays are mapped, not read. graph.json may hold anything else as notes. Where it holds `types`, the graph is a
typed one, with a folder for each type and each relation.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from distgnn.datasets.array_files import is_present, read_json, read_npy
from distgnn.datasets.fields import ARRAYS, SPLITS, TYPE_NAMES
from distgnn.datasets.files.matrix import read_rows
from distgnn.datasets.findings.findings import Findings
from distgnn.datasets.formats.folder_writer import EDGE_FILES, OF_RELATIONS, OF_TYPES, folder_name, typed_keys
from distgnn.datasets.graph_data import GraphData
from distgnn.datasets.names.field_names import KEYWORDS, leave_out
from distgnn.datasets.objects.from_types import from_tables
from distgnn.datasets.objects.labels import as_labels
from distgnn.datasets.objects.values import as_split
from distgnn.datasets.text_table import read_table
from distgnn.datasets.typed import shown
from distgnn.errors import DistGNNError, GraphFormatError, InputError

# File name without suffix -> field; the usual slips besides PyG's names.
SLIPS = (
    "x", "y", "feat", "features", "label", "train_mask", "val_mask", "valid_mask", "test_mask", "val", "edge_weights",
)  # fmt: skip
STEMS = {name: name for name in ("feats", "labels", *ARRAYS, *SPLITS)} | {name: KEYWORDS[name] for name in SLIPS}
OF_HEADER = (
    "name", "num_nodes", "directed", "num_classes", "held_out", "arc_order", *TYPE_NAMES, "types", "relations",
    "type_classes",
)  # fmt: skip
ARRAY_FILE = re.compile(r"(\w+)\.(npy|npz|csv|tsv|txt|pt|pkl|parquet|mtx|json)(\.gz)?")


def is_graph_folder(folder: Path) -> bool:
    return (folder / "graph.json").is_file() or any((folder / name).is_file() for name in EDGE_FILES)


def _only_file(folder: Path, names: tuple[str, ...]) -> Path | None:
    """The one file of these. Raises: GraphFormatError where there are two."""
    found = [folder / name for name in names if is_present(folder / name)]
    if len(found) > 1:
        raise GraphFormatError(f"{folder}: holds {' and '.join(path.name for path in found)}; keep one of them")
    return found[0] if found else None


def _read_array(path: Path) -> Any:
    """A mapped array of a .npy file, or a CSR matrix."""
    return read_npy(path) if path.suffix == ".npy" else read_rows(path, as_csr=True)


def read_folder(folder: Path, findings: Findings | None = None) -> GraphData:
    """Read and check a plain graph folder; what was found is in the graph's `findings`."""
    header_path = folder / "graph.json"
    if not is_present(header_path):
        raise InputError(f'{header_path}: no such file; write {{"name": ..., "num_nodes": N, "directed": false}} there')
    header = read_json(header_path)
    if "types" in header:
        return _read_typed(folder, header, Findings() if findings is None else findings)
    num_nodes, directed, num_classes = _read_header(header_path, header)
    files = {"num_nodes": header_path}
    fields: dict[str, Any] = {}
    for key in TYPE_NAMES:
        names = header.get(key, [])
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise GraphFormatError(f"{header_path}: {key!r} must be a list of names, found {names!r}")
        fields[key] = tuple(names)
    findings = Findings() if findings is None else findings
    for name in ("labels", *ARRAYS, *SPLITS):
        path = folder / f"{name}.npy"
        if is_present(path):
            files[name] = path
            with findings.reading(name):
                fields |= _as_field(name, read_npy(path), path, (num_nodes, num_classes), findings)
    with findings.reading("feats"):
        source = _only_file(folder, ("feats.npy", "feats.npz"))
        if source is not None:
            files["feats"] = source
            fields["feats"] = _read_array(source)
    edges = np.zeros((0, 2), dtype=np.int64)
    with findings.reading("edges"):
        source = _only_file(folder, EDGE_FILES)
        if source is None:
            raise InputError(f"{folder}: no edges; expected one of {', '.join(EDGE_FILES)}")
        files["edges"] = source
        edges = read_npy(source) if source.suffix == ".npy" else read_table(source, np.int64, columns=2)
        edges = edges.astype(np.int64).reshape(0, 2) if edges.size == 0 else edges
        if source.suffix != ".npy" and len(edges) > 3 and edges[0].tolist() == [len(edges) - 1, len(edges) - 1]:
            findings.add(  # METIS's first line is N and M; here each vertex would have two neighbours
                "caution", "edges", f"{source.name} looks like a METIS file (its first line is N and M, then a line "
                "for each vertex), and is read as one edge per line", len(edges),
            )  # fmt: skip
    with findings.reading("files"):
        _refuse_unread(folder, files, findings)
    num_classes = fields.pop("num_label_classes", num_classes)
    fields |= {"num_nodes": num_nodes, "edges": edges, "directed": directed, "num_label_classes": num_classes}
    fields |= {"held_out": header.get("held_out", True) is not False, "arc_order": header.get("arc_order", "listed")}
    return GraphData.from_fields(fields | _about(folder, header) | {"files": files, "findings": findings})


def _read_typed(folder: Path, header: dict[str, Any], findings: Findings) -> GraphData:
    """The graph of a folder whose graph.json names types."""
    types, relations = typed_keys(folder / "graph.json", header)
    tables: dict[Any, dict[str, Any]] = {kind: {"num_nodes": count} for kind, count in types.items()}
    tables |= {relation: {} for relation in relations}
    files: dict[str, Path] = {}
    for key, table in tables.items():
        place, names = folder / folder_name(key), OF_TYPES if isinstance(key, str) else OF_RELATIONS
        for name in names:
            path = _only_file(place, (f"{name}.npy", *["feats.npz"] * (name == "feats")))
            if path is not None:
                table[name] = _read_array(path)
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
    return GraphData.from_fields(fields | _about(folder, header) | {"files": files})


def _about(folder: Path, header: dict[str, Any]) -> dict[str, Any]:
    """The graph's name, and its notes: all that graph.json holds besides."""
    notes = {key: value for key, value in header.items() if key not in OF_HEADER}
    return {"name": str(header.get("name") or folder.name), "notes": notes}


def _as_field(name: str, array: np.ndarray, path: Path, sizes: tuple[int, int | None], findings: Findings) -> Any:
    """Labels and splits in the form that `GraphData` holds, other arrays as they are (mapped); errors name the file."""
    try:
        if name == "labels" and array.dtype.kind in "biufUS":
            values = (path.parent / "node_values.npy").exists()  # then these are classes
            found = as_labels(array, findings, sizes[1], "node" if values else None)
            if "node_values" in found and values:
                raise InputError("labels must be whole numbers, or NaN for none, beside node_values.npy")
            return found
        if name in SPLITS and array.dtype.kind in "biuf":
            return {name: as_split(name, array, sizes[0])}
    except InputError as error:
        wrong = GraphFormatError(f"{path}: {str(error).removeprefix(f'{name}: ')}")
        wrong.count = error.count
        raise wrong from None
    return {name: array}


def _read_header(path: Path, header: dict[str, Any]) -> tuple[int, bool, int | None]:
    def fail(key: str, expected: str) -> NoReturn:
        found = repr(header[key]) if key in header else "nothing"
        raise GraphFormatError(f"{path}: {key!r} must be {expected}, found {found}")

    if type(header.get("num_nodes")) is not int:
        fail("num_nodes", "the number of vertices")
    if not isinstance(header.get("directed"), bool):
        fail("directed", "true or false")
    num_classes = header.get("num_classes")
    if num_classes is not None and (type(num_classes) is not int or num_classes < 1):
        fail("num_classes", "a whole number of at least 1")
    return header["num_nodes"], header["directed"], num_classes


def _refuse_unread(folder: Path, files: Mapping[str, Path], findings: Findings) -> None:
    """Raise GraphFormatError for an array file of a field that no file gives; name every other file as left out."""
    for path in sorted(folder.iterdir()):
        match = ARRAY_FILE.fullmatch(path.name)
        field = STEMS.get(match[1]) if match else None
        if match and path.name != "graph.json" and path not in files.values() and (field is None or field in files):
            findings.add("left out", path.name, path.name)
        elif field is not None and field not in files:
            expected = "feats.npy (or feats.npz, scipy CSR)" if field == "feats" else f"{field}.npy"
            raise GraphFormatError(f"{path}: is not read: {field} are {expected}; convert it, or move it elsewhere")
