"""Parquet files, read by pyarrow: the edges of a graph, or columns of vertices."""

from pathlib import Path
from typing import Any

import numpy as np

from distgnn.datasets.array_files import check_file, check_room, damaged
from distgnn.datasets.files.understood import make_graph
from distgnn.datasets.findings.findings import Findings
from distgnn.datasets.graph_data import GraphData
from distgnn.datasets.names.renumber import renumber as names_to_ids
from distgnn.datasets.objects.arrays import edges_of_frame
from distgnn.datasets.objects.values import as_ids
from distgnn.errors import GraphFormatError, InputError


class ParquetFrame:
    """The columns of a file, as a frame of pandas has them. Raises: GraphFormatError, for a damaged column too."""

    def __init__(self, path: Path, table: Any):
        self._path, self._table = path, table
        self.columns: list[str] = table.column_names

    def __len__(self) -> int:
        return int(self._table.num_rows)

    def __getitem__(self, name: str) -> np.ndarray:
        try:
            column = self._table.column(name).combine_chunks()
            column = column.dictionary_decode() if hasattr(column, "dictionary_decode") else column
            width = getattr(column.type, "list_size", 0)
            if width > 0 and not column.null_count:  # as `predict` writes embeddings
                return column.flatten().to_numpy(zero_copy_only=False).reshape(-1, width)
            return column.to_numpy(zero_copy_only=False)
        except Exception as error:  # of damaged bytes Arrow raises nearly anything
            raise damaged(self._path, error) from error


def read_parquet(path: Path) -> ParquetFrame:
    """All columns of a file. Raises: InputError without pyarrow, GraphFormatError for a damaged file."""
    check_file(path)
    try:
        import pyarrow.parquet
    except ImportError:
        raise InputError(f"{path}: a .parquet file needs the package pyarrow: pip install pyarrow") from None
    try:
        about = pyarrow.parquet.read_metadata(str(path))
        check_room(path, 8 * max(about.num_rows, 0) * about.num_columns)
        return ParquetFrame(path, pyarrow.parquet.read_table(str(path)))
    except (OSError, ValueError, pyarrow.ArrowException) as error:
        raise damaged(path, error) from error


def read_edge_parquet(path: Path, findings: Findings, renumber: bool) -> GraphData:
    """A graph from a file with a row for each edge; renumber: ids are names, which `node_names` keeps."""
    try:
        ends, fields = edges_of_frame(read_parquet(path), findings)
        if renumber:
            pairs, fields["node_names"] = names_to_ids(ends)
            ends, num_nodes = (pairs[:, 0], pairs[:, 1]), len(fields["node_names"])
        else:
            if any(end.dtype.kind in "UO" for end in ends):
                raise InputError("edges: ids are texts: --renumber (renumber=True), or --nodes")
            ends = (as_ids("edges", ends[0]), as_ids("edges", ends[1]))
            num_nodes = int(max(end.max(initial=-1) for end in ends)) + 1
    except InputError as error:
        raise GraphFormatError(f"{path}: {error}") from None
    ids_from = "ids renumbered" if renumber else "ids from 0"
    return make_graph(path, ends, num_nodes, findings, fields, ids_from=ids_from)
