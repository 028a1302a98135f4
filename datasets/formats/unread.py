"""Files in a graph folder that look like arrays of it and would not be read: refused or named, never passed over."""

import re
from collections.abc import Mapping
from pathlib import Path

from distgnn.datasets.fields import ARRAYS, SPLITS
from distgnn.datasets.findings.findings import Findings
from distgnn.datasets.names.field_names import KEYWORDS
from distgnn.errors import GraphFormatError

# File name without suffix -> field; the usual slips besides PyG's names.
SLIPS = (
    "x", "y", "feat", "features", "label", "train_mask", "val_mask", "valid_mask", "test_mask", "val", "edge_weights",
)  # fmt: skip
STEMS = {name: name for name in ("feats", "labels", *ARRAYS, *SPLITS)} | {name: KEYWORDS[name] for name in SLIPS}
ARRAY_FILE = re.compile(r"(\w+)\.(npy|npz|csv|tsv|txt|pt|pkl|parquet|mtx|json)(\.gz)?")


def refuse_unread(folder: Path, files: Mapping[str, Path], findings: Findings) -> None:
    """Raise GraphFormatError for an array file of a field that no file of the format gives; name every other file.

    Args: files: field -> file that was read.
    Notes: `labels.csv` beside `labels.npy` is left out, and so is every array of another name.
    """
    for path in sorted(folder.iterdir()):
        match = ARRAY_FILE.fullmatch(path.name)
        field = STEMS.get(match[1]) if match else None
        if match and path.name != "graph.json" and path not in files.values() and (field is None or field in files):
            findings.add("left out", path.name, path.name)
        elif field is not None and field not in files:
            expected = "feats.npy (or feats.npz, scipy CSR)" if field == "feats" else f"{field}.npy"
            raise GraphFormatError(f"{path}: is not read: {field} are {expected}; convert it, or move it elsewhere")
