"""What of a graph will be in memory once it is loaded, as far as its name and the sizes of its files tell.

Mapped files (`.npy`, uncompressed `.npz`) count as nothing; text and generated graphs are arrays in memory.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from distgnn.datasets.generators.communities import CommunityOptions
from distgnn.datasets.generators.generator_spec import parse_spec
from distgnn.datasets.generators.rmat import RmatOptions
from distgnn.datasets.registry import GENERATORS, default_data_root, places
from distgnn.datasets.text.table import is_table

TEXT_NAMES = ("edges.csv", "edges.txt", "edges.csv.gz", "edges.txt.gz")
OGB_NAMES = ("raw/edge.csv.gz", "raw/node-feat.csv.gz")
BYTES_OF_TEXT = {".gz": 4.0}  # in memory for each byte of the file; of plain text 1: "1234567 2345678" becomes 16


def loading_bytes(source: Any, data_root: str | Path | None = None) -> int:
    """About how many bytes loading this source takes in memory; 0 where nothing can be said,
    and for a graph that is in memory already."""
    if not isinstance(source, str | Path):
        return 0
    kind, colon, _ = str(source).partition(":")
    if colon and kind in GENERATORS:
        if kind == "rmat":
            rmat = parse_spec(str(source), RmatOptions, 0)
            nodes, feats = 2 ** min(max(rmat.scale, 0), 40), rmat.feats
            edges = nodes * rmat.edge_factor
        else:
            options = parse_spec(str(source), CommunityOptions, 0)
            nodes, edges, feats = options.nodes, int(options.nodes * options.avg_degree / 2), options.feats
        # Edges as int32 pairs with a key of 8 bytes each while duplicates are looked for, and float32 features.
        return 16 * edges + 4 * nodes * feats
    root = Path(data_root) if data_root is not None else default_data_root()
    for folder in places(str(source), root):
        if folder.is_file():
            text = is_table(folder) or folder.suffix == ".gz"
            return int(folder.stat().st_size * BYTES_OF_TEXT.get(folder.suffix, 1.0)) if text else 0
        files = [folder / name for name in (*TEXT_NAMES, *OGB_NAMES) if (folder / name).is_file()]
        if files:
            return int(sum(path.stat().st_size * BYTES_OF_TEXT.get(path.suffix, 1.0) for path in files))
    return 0
