"""What of a graph will be in memory once it is loaded, as far as its name and the sizes of its files tell.

Mapped files (`.npy`, uncompressed `.npz`) count as nothing; text and generated graphs are arrays in memory.
"""

from __future__ import annotations

from pathlib import Path

from distgnn.datasets.generators.communities import CommunityOptions
from distgnn.datasets.generators.generator_spec import parse_spec
from distgnn.datasets.generators.rmat import RmatOptions
from distgnn.datasets.registry import GENERATORS, default_data_root, places

TEXT_NAMES = ("edges.csv", "edges.txt", "edges.csv.gz", "edges.txt.gz")
OGB_NAMES = ("raw/edge.csv.gz", "raw/node-feat.csv.gz")
BYTES_OF_TEXT = {".gz": 4.0}  # in memory for each byte of the file; of plain text 1: "1234567 2345678" becomes 16


def loading_bytes(source: str | Path, data_root: str | Path | None = None) -> int:
    """About how many bytes loading this source takes in memory; 0 where nothing can be said.

    Raises: InputError for a generator's text that cannot be read.
    """
    kind, colon, _ = str(source).partition(":")
    if colon and kind in GENERATORS:
        return _generated(kind, str(source))
    root = Path(data_root) if data_root is not None else default_data_root()
    for folder in places(str(source), root):
        files = [folder / name for name in (*TEXT_NAMES, *OGB_NAMES) if (folder / name).is_file()]
        if files:
            return int(sum(path.stat().st_size * BYTES_OF_TEXT.get(path.suffix, 1.0) for path in files))
    return 0


def _generated(kind: str, source: str) -> int:
    """Rows as int32 pairs with a key of 8 bytes each while duplicates are looked for, and float32 features."""
    if kind == "rmat":
        options = parse_spec(source, RmatOptions, 0)
        nodes = 2 ** min(max(options.scale, 0), 40)
        rows = nodes * options.edge_factor
    else:
        options = parse_spec(source, CommunityOptions, 0)
        nodes, rows = options.nodes, int(options.nodes * options.avg_degree / 2)
    return 16 * rows + 4 * nodes * options.feats
