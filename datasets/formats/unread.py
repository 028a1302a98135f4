"""Files in a graph folder that look like arrays of the graph and would not be read: refused, never passed over."""

import re
from collections.abc import Collection
from pathlib import Path

from distgnn.datasets.fields import ARRAYS, SPLITS
from distgnn.datasets.names.field_names import ALIASES
from distgnn.errors import GraphFormatError

# File name without suffix -> field; the usual slips besides PyG's names.
STEMS = {name: name for name in ("feats", "labels", *ARRAYS, *SPLITS)} | {
    **ALIASES,
    "feat": "feats",
    "features": "feats",
    "label": "labels",
    "val": "valid",
    "edge_weights": "edge_weight",
}
ARRAY_FILE = re.compile(r"(\w+)\.(npy|npz|csv|tsv|txt|pt|pkl|parquet|mtx|json)(\.gz)?")


def refuse_unread(folder: Path, read: Collection[str]) -> None:
    """Raise GraphFormatError for an array file of a field that no file of the format gives.

    Args: read: names of the fields that were read.
    Notes: `labels.csv` beside `labels.npy` is left alone, and so is every file of another name.
    """
    for path in sorted(folder.iterdir()):
        match = ARRAY_FILE.fullmatch(path.name)
        field = STEMS.get(match[1]) if match else None
        if field is not None and field not in read:
            expected = "feats.npy (or feats.npz, scipy CSR)" if field == "feats" else f"{field}.npy"
            raise GraphFormatError(f"{path}: is not read: {field} are {expected}; convert it, or move it elsewhere")
