"""What identifies a graph before it is cut: a hash of its content, whatever it was made from.

In memory: every array of the `GraphData`. On disk: the file, or every file of the folder. A generated graph: its text
and its seed.
"""

import hashlib
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from distgnn.datasets import GraphData
from distgnn.datasets.registry import GENERATORS, default_data_root, places
from distgnn.errors import InputError
from distgnn.system.cores import available_cores

BLOCK_BYTES = 1 << 24
NOT_CONTENT = ("findings", "files", "notes")


def content_of_graph(graph: GraphData) -> str:
    """The hash of a graph in memory; one pass over its arrays, on all cores."""
    with ThreadPoolExecutor(available_cores()) as pool:
        parts = [
            [field.name, _of_value(getattr(graph, field.name), pool)]
            for field in fields(graph)
            if field.name not in NOT_CONTENT
        ]
    return _text_hash(["graph", parts])


def content_of_source(source: str, data_root: str | Path | None, seed: int) -> str:
    """The hash of what `load_graph` reads for this text. Raises: InputError for files that cannot be read."""
    if source.partition(":")[0] in GENERATORS and ":" in source:
        return _text_hash(["generated", source, seed])
    root = Path(data_root) if data_root is not None else default_data_root()
    found = [path for path in dict.fromkeys(places(source, root)) if path.exists()]
    try:
        with ThreadPoolExecutor(available_cores()) as pool:
            hashes = []
            for place in found:
                files = [place] if place.is_file() else sorted(path for path in place.rglob("*") if path.is_file())
                names = [place.name] if place.is_file() else [path.relative_to(place).as_posix() for path in files]
                hashes.append([[n, _digests(_blocks_of(f), pool)] for n, f in zip(names, files, strict=True)])
            return _text_hash(["files", hashes])
    except OSError as error:
        raise InputError(f"{source} cannot be read: {error}") from error


def _blocks_of(path: Path) -> Iterator[bytes]:
    with open(path, "rb") as stream:
        while block := stream.read(BLOCK_BYTES):
            yield block


def _of_value(value: Any, pool: ThreadPoolExecutor) -> Any:
    if hasattr(value, "indptr"):  # scipy CSR
        return [list(value.shape), *(_of_value(part, pool) for part in (value.indptr, value.indices, value.data))]
    if not isinstance(value, np.ndarray):
        return repr(value)
    if value.dtype.kind == "U":
        return [str(value.dtype), _of_value(np.ascontiguousarray(value).view(np.uint32), pool)]
    rows = max(1, BLOCK_BYTES // max(1, value[:1].nbytes))
    blocks = (np.ascontiguousarray(value[first : first + rows]) for first in range(0, len(value), rows))
    return [str(value.dtype), list(value.shape), _digests(blocks, pool)]


def _digests(blocks: Any, pool: ThreadPoolExecutor) -> list[str]:
    return list(pool.map(lambda block: hashlib.sha256(block).hexdigest(), blocks))


def _text_hash(content: Any) -> str:
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()
