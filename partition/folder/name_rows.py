"""Names of vertices as rows of numbers, as files and messages hold them.

Legend: n vertices. A text is UTF-8 with zeros behind, uint8 [n, width]; whole numbers are int64 [n].
"""

import numpy as np

from distgnn.errors import InputError

BLOCK = 1 << 20


def name_bytes(names: np.ndarray) -> int:
    """The width of texts: bytes of the longest; 0 for whole numbers."""
    if names.dtype.kind != "U":
        return 0
    blocks = (np.char.encode(names[i : i + BLOCK], "utf-8") for i in range(0, len(names), BLOCK))
    return max((block.dtype.itemsize for block in blocks), default=1)


def name_rows(names: np.ndarray, width: int) -> np.ndarray:
    """Names [n] as rows. Raises: InputError for a number that int64 does not hold."""
    if width:
        return np.char.encode(names, "utf-8").astype(f"S{width}").view(np.uint8).reshape(-1, width)
    if names.dtype.kind == "u" and names.size and int(names.max()) >= 1 << 63:
        raise InputError(f"node_names: {names.max()} is beyond 63 bits: give texts, names.astype(str)")
    return names.astype(np.int64)


def names_of(rows: np.ndarray) -> np.ndarray:
    """Names [n] of rows."""
    if rows.ndim == 1:
        return rows
    return np.char.decode(np.ascontiguousarray(rows).view(f"S{rows.shape[1]}").reshape(-1), "utf-8")
