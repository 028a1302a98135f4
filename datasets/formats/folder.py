"""The plain graph folder: how users bring a graph of their own. Its files: docs/formats.md.

Large arrays are mapped, not read. graph.json may hold anything else as notes. Where it holds `types`, the graph is a
typed one: typed_folder.py.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from distgnn.datasets.array_files import is_present, read_json, read_npy
from distgnn.datasets.fields import ARRAYS, SPLITS, TYPE_NAMES
from distgnn.datasets.findings.findings import Findings
from distgnn.datasets.formats.folder_writer import EDGE_FILES
from distgnn.datasets.formats.typed_folder import OF_TYPED_HEADER, only_file, read_array, read_typed
from distgnn.datasets.graph_data import GraphData
from distgnn.datasets.names.field_names import KEYWORDS
from distgnn.datasets.objects.labels import as_labels
from distgnn.datasets.objects.values import as_split
from distgnn.datasets.text.table import read_table
from distgnn.errors import GraphFormatError, InputError

# File name without suffix -> field; the usual slips besides PyG's names.
SLIPS = (
    "x", "y", "feat", "features", "label", "train_mask", "val_mask", "valid_mask", "test_mask", "val", "edge_weights",
)  # fmt: skip
STEMS = {name: name for name in ("feats", "labels", *ARRAYS, *SPLITS)} | {name: KEYWORDS[name] for name in SLIPS}
OF_HEADER = ("name", "num_nodes", "directed", "num_classes", "held_out", "arc_order", *TYPE_NAMES, *OF_TYPED_HEADER)
ARRAY_FILE = re.compile(r"(\w+)\.(npy|npz|csv|tsv|txt|pt|pkl|parquet|mtx|json)(\.gz)?")


def is_graph_folder(folder: Path) -> bool:
    return (folder / "graph.json").is_file() or any((folder / name).is_file() for name in EDGE_FILES)


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
        source = only_file(folder, ("feats.npy", "feats.npz"))
        if source is not None:
            files["feats"] = source
            fields["feats"] = read_array(source)
    edges = np.zeros((0, 2), dtype=np.int64)
    with findings.reading("edges"):
        source = only_file(folder, EDGE_FILES)
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
    notes = {key: value for key, value in header.items() if key not in OF_HEADER}
    more: dict[str, Any] = {"notes": notes, "files": files, "findings": findings, "num_label_classes": num_classes}
    more |= {"held_out": header.get("held_out", True) is not False, "arc_order": header.get("arc_order", "listed")}
    return GraphData(str(header.get("name") or folder.name), num_nodes, edges, directed, **more, **fields).check()


def _read_typed(folder: Path, header: dict[str, Any], findings: Findings) -> GraphData:
    notes = {key: value for key, value in header.items() if key not in OF_HEADER}
    about = {"name": str(header.get("name") or folder.name), "notes": notes}
    return GraphData.from_fields(read_typed(folder, header, findings) | about)


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
