"""Square sparse matrices: MatrixMarket's .mtx, METIS's .graph and scipy's .npz; and .npz files of named arrays.

Entry [u, v] is the arc u -> v. Values that are not all 1 are edge weights.
"""

import io
import re
from array import array
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

import numpy as np
import scipy.io
import scipy.sparse

from distgnn.datasets.array_files import check_file, check_room, damaged, read_npz
from distgnn.datasets.checks import check_size
from distgnn.datasets.files.understood import FROM_ONE, make_graph
from distgnn.datasets.findings.findings import Findings
from distgnn.datasets.graph_data import GraphData
from distgnn.datasets.names.field_names import OF_EDGES, OF_NODES, take_columns
from distgnn.datasets.objects.arrays import edge_pairs
from distgnn.datasets.objects.values import check_compressed
from distgnn.datasets.pairs import pair_keys
from distgnn.datasets.text_table import open_text
from distgnn.errors import GraphFormatError, InputError

# Prefix of the arrays of a matrix in a file of several (gnn-benchmark's data sets) -> field.
PREFIXED = {"adj": "adjacency", "attr": "feats", "labels": "labels"}
PARTS = {"csr": ("data", "indices", "indptr", "shape"), "coo": ("data", "row", "col", "shape")}


class _WholeLines(io.RawIOBase):
    """The bytes of a stream, and a last line's end where it lacks one: scipy's reader crashes in a file cut short."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream, self._line_ended = stream, True

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        block = self._stream.read(len(buffer)) or (b"" if self._line_ended else b"\n")
        self._line_ended = block[-1:] in (b"", b"\n")
        buffer[: len(block)] = block
        return len(block)


def read_market(path: Path, findings: Findings) -> GraphData:
    """MatrixMarket, plain or .gz: coordinate; real, integer or pattern; general or symmetric. Ids are from 1 there."""
    check_file(path)
    size = ""
    try:
        rows, columns, entries, form, field, symmetry = scipy.io.mminfo(path)
        size = f" (the size is {rows} x {columns})"
        if form != "coordinate" or field == "complex" or symmetry not in ("general", "symmetric"):
            raise GraphFormatError(
                f"{path}: line 1: of kind {form} {field} {symmetry}, no graph: expected coordinate, real, integer "
                "or pattern, general or symmetric"
            )
        check_room(path, 32 * int(entries))
        with open_text(path) as stream:
            matrix = scipy.io.mmread(io.BufferedReader(_WholeLines(stream), 1 << 20), spmatrix=False)
    except (GraphFormatError, InputError):
        raise
    except Exception as error:  # scipy's reader has several, and names the line
        found = re.match(r"Line (\d+): (.*)", str(error))
        if found is None:
            raise damaged(path, error) from error
        raise GraphFormatError(f"{path}: line {found[1]}: {found[2]}{size}") from error
    return _of_matrix(path, matrix, findings, {}, FROM_ONE)


def read_arrays(path: Path, findings: Findings) -> GraphData:
    """`scipy.sparse.save_npz`; `adj_data`, `adj_indices`, … with `attr_…` and labels; or edges and columns by name."""
    arrays = read_npz(path)
    if "format" in arrays and "shape" in arrays:
        return _of_matrix(path, read_rows(path), findings, {})
    found: dict[str, Any] = {}
    for prefix, field in PREFIXED.items():
        for kind, parts in PARTS.items():
            names = [f"{prefix}_{part}" for part in parts]
            if all(name in arrays for name in names):
                found[field] = _matrix(path, arrays, f"{prefix}_", kind)
                arrays = {name: value for name, value in arrays.items() if name not in names}
    edges = next((name for name in ("edge_index", "edges") if name in arrays), None)
    if "adjacency" not in found and edges is None:
        raise GraphFormatError(
            f"{path}: expected a matrix of scipy.sparse.save_npz, or the array edge_index or edges; it holds "
            f"{', '.join(sorted(arrays)) or 'nothing'}"
        )
    adjacency = found.pop("adjacency", None)
    pairs = None if edges is None or adjacency is not None else edge_pairs(arrays.pop(edges))
    fields = take_columns(arrays, OF_NODES, {}, findings, found) | found
    if pairs is None:
        return _of_matrix(path, adjacency, findings, fields)
    fields |= take_columns({name: arrays[name] for name in arrays if name not in fields}, OF_EDGES, {}, Findings())
    num_nodes = len(fields["feats"]) if "feats" in fields else int(pairs.max(initial=-1)) + 1
    return make_graph(path, (pairs[:, 0], pairs[:, 1]), num_nodes, findings, fields)


def read_rows(path: Path, as_csr: bool = False) -> Any:
    """A matrix of `scipy.sparse.save_npz` of any shape, checked; as_csr: CSR, or COO that is turned into it."""
    arrays = read_npz(path, ("format", "shape", "data"))
    word = arrays["format"].item() if arrays["format"].size == 1 else ""  # of [2^31, 0] a list takes all memory
    kind = word.decode("ascii", "replace") if isinstance(word, bytes) else str(word)
    if not as_csr:
        return _matrix(path, arrays, "", kind)
    if kind not in PARTS or any(name not in arrays for name in PARTS[kind]):
        raise GraphFormatError(f"{path}: expected a sparse matrix in CSR form, found {kind!r}")
    matrix = _matrix(path, arrays, "", kind)

    def refuse(text: str) -> NoReturn:
        raise GraphFormatError(f"{path}: {text}")

    if kind == "coo":
        check_size(matrix.shape[0], matrix.nnz, refuse)
    return scipy.sparse.csr_matrix(matrix)


def _matrix(path: Path, arrays: dict[str, np.ndarray], prefix: str, kind: str) -> Any:
    make = {"csr": scipy.sparse.csr_array, "csc": scipy.sparse.csc_array, "coo": scipy.sparse.coo_array}.get(kind)
    if make is None:
        raise GraphFormatError(f"{path}: expected a matrix in the form csr, csc or coo, found {kind!r}")
    names = PARTS["coo" if kind == "coo" else "csr"]
    try:
        data, first, second, shape = (arrays[prefix + name] for name in names)
        size = tuple(int(length) for length in shape)
        if len(size) != 2 or min(size) < 0:
            raise ValueError(f"a matrix cannot have the shape {size}")
        matrix = make((data, (first, second)) if kind == "coo" else (data, first, second), shape=size)
        if kind != "coo":
            check_compressed(matrix)
    except (KeyError, ValueError, IndexError, TypeError) as error:
        raise damaged(path, error) from error
    return matrix


def square_entries(path: Path, matrix: Any) -> Any:
    """The entries of a matrix as COO. Raises: GraphFormatError unless it is square."""
    if matrix.shape[0] != matrix.shape[1]:
        raise GraphFormatError(
            f"{path}: expected a square matrix, one row and column per vertex, found {list(matrix.shape)}"
        )
    return matrix.tocoo()


def _of_matrix(
    path: Path, matrix: Any, findings: Findings, fields: dict[str, Any], ids_from: str = "ids from 0"
) -> GraphData:
    entries = square_entries(path, matrix)
    if (entries.data != 1).any():
        zeros = int(np.count_nonzero(entries.data == 0))
        if zeros:
            findings.add("caution", "edges", f"{zeros} stored zeros are edges of weight 0", zeros)
        fields = {"edge_weight": entries.data, **fields}
    ends = entries.row.astype(np.int64), entries.col.astype(np.int64)
    return make_graph(path, ends, matrix.shape[0], findings, fields, ids_from=ids_from)


def read_metis(path: Path, findings: Findings) -> GraphData:
    """METIS: a line `N M [format [weights per vertex]]`, then one line for each vertex: neighbours, from 1.

    Edge weights are taken; weights and sizes of vertices are left out.
    """
    check_file(path)
    try:
        return _read_lines(path, findings)
    except (OSError, EOFError) as error:
        raise damaged(path, error) from error


def _read_lines(path: Path, findings: Findings) -> GraphData:
    numbers: list[int] = []
    header_line, neighbours, weights, counts, lines = 0, array("q"), array("d"), array("q"), array("q")
    skip, weighted = 0, False
    with open_text(path) as stream:
        for number, line in enumerate(stream, 1):
            if line.startswith(b"%"):
                continue
            words = line.split()
            if not numbers:
                header_line = number
                numbers, skip, weighted = _header(path, number, words, findings)
                continue
            if len(counts) == numbers[0]:
                if words:
                    _fail(path, number, f"the header (line {header_line}) has {numbers[0]} vertices: one line too many")
                continue
            row = words[skip:]
            if len(words) < skip or (weighted and len(row) % 2):
                _fail(path, number, f"expected {'pairs of neighbour and weight' if weighted else 'vertex weights'}")
            try:
                neighbours.extend(map(int, row[::2] if weighted else row))
                weights.extend(map(float, row[1::2] if weighted else ()))
            except (ValueError, OverflowError):
                _fail(path, number, f"expected whole numbers, found {line.decode('utf-8', 'replace').strip()[:60]!r}")
            counts.append(len(row) // 2 if weighted else len(row))
            lines.append(number)
    if not numbers or len(counts) != numbers[0]:
        expected = f"{numbers[0]} lines of neighbours" if numbers else "a first line of N and M"
        raise GraphFormatError(f"{path}: expected {expected}, found {len(counts)}: the file is cut short")
    num_nodes, num_edges = numbers[:2]
    sources = np.repeat(np.arange(num_nodes), np.frombuffer(counts, np.int64)) if num_nodes else np.zeros(0, np.int64)
    targets = np.frombuffer(neighbours, np.int64) - 1 if len(neighbours) else np.zeros(0, np.int64)
    wrong = (targets < 0) | (targets >= num_nodes)
    if wrong.any():
        place = int(np.argmax(wrong))
        _fail(path, lines[sources[place]], f"names vertex {targets[place] + 1}: ids run from 1 to {num_nodes}")
    keys, back = pair_keys(sources, targets, num_nodes), pair_keys(targets, sources, num_nodes)
    alone = ~np.isin(keys, back)
    if alone.any():
        place = int(np.argmax(alone))
        u, v = sources[place] + 1, targets[place] + 1
        _fail(path, lines[sources[place]], f"vertex {u} names {v}, and {v} does not name {u}: each edge stands twice")
    loops = int(np.count_nonzero(sources == targets))
    if len(targets) not in (2 * num_edges, 2 * num_edges - loops):
        found = f"{len(targets)} neighbours, not {2 * num_edges}"
        raise GraphFormatError(f"{path}: line {header_line}: the header has {num_edges} edges: found {found}")
    fields = {"edge_weight": np.frombuffer(weights, np.float64)} if weighted else {}
    return make_graph(path, (sources, targets), num_nodes, findings, fields, ids_from=FROM_ONE)


def _header(path: Path, line: int, words: list[bytes], findings: Findings) -> tuple[list[int], int, bool]:
    """N and M, numbers before the neighbours of each line, and whether edges have weights."""
    try:
        numbers = [int(word) for word in words]
        flags = words[2].decode().rjust(3, "0") if len(words) > 2 else "000"
        if not 2 <= len(words) <= 4 or min(numbers) < 0 or len(flags) > 3 or set(flags) - {"0", "1"}:
            raise ValueError
    except (ValueError, UnicodeDecodeError):
        _fail(path, line, f"expected N, M and a format as 001, found {b' '.join(words).decode('utf-8', 'replace')!r}")
    per_vertex = (numbers[3] if len(words) > 3 else 1) if flags[1] == "1" else 0
    if flags[0] == "1":
        findings.add("left out", "sizes", "sizes of vertices", numbers[0])
    if per_vertex:
        findings.add("left out", "weights", "weights of vertices", numbers[0])
    return numbers, per_vertex + (flags[0] == "1"), flags[2] == "1"


def _fail(path: Path, line: int, text: str) -> NoReturn:
    raise GraphFormatError(f"{path}: line {line}: {text}")
