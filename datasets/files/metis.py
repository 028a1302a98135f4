"""METIS's graphs: a line `N M [format [weights per vertex]]`, then one line for each vertex: neighbours, from 1."""

from array import array
from pathlib import Path
from typing import NoReturn

import numpy as np

from distgnn.datasets.array_files import check_file, damaged
from distgnn.datasets.files.understood import make_graph
from distgnn.datasets.findings.findings import Findings
from distgnn.datasets.graph_data import GraphData
from distgnn.datasets.pairs import pair_keys
from distgnn.datasets.text.table import open_text
from distgnn.errors import GraphFormatError


def read_metis(path: Path, findings: Findings) -> GraphData:
    """Read and check a METIS file; edge weights are taken, those and sizes of vertices are left out."""
    check_file(path)
    try:
        return _read(path, findings)
    except (OSError, EOFError) as error:
        raise damaged(path, error) from error


def _read(path: Path, findings: Findings) -> GraphData:
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
    ids_from = "ids from 1 in the file: vertex 0 is its 1"
    return make_graph(path, (sources, targets), num_nodes, findings, fields, directed=True, ids_from=ids_from)


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
