"""Wires: in which format rows travel between ranks. What a format is, is said in this table alone.

    wire       bytes of a row of D columns      value
    float32    4 D (8 D for float64 rows)       itself
    bfloat16   2 D                              rounded to nearest even
    int8       D + 4                            code · scale,  scale = max |row| / 127, code in [-127, 127]
    int4       ceil(D / 2) + 4                  code · scale,  scale = max |row| / 7, code in [-7, 7]

Options, sizes of messages and estimates ask here; `kernels/wire/codecs.py` encodes and decodes.
"""

from typing import NamedTuple


class WireFormat(NamedTuple):
    """bits of a number on the wire, 0: of the rows' own dtype; levels: its codes go from -levels to levels, 0: a float.

    Rows of codes end with a float32 scale.
    """

    bits: int
    levels: int = 0


WIRES = {
    "float32": WireFormat(0),
    "bfloat16": WireFormat(16),
    "int8": WireFormat(8, levels=127),
    "int4": WireFormat(4, levels=7),
}


def row_bytes(width: int, wire: str, item: int = 4) -> int:
    """Bytes of one encoded row of `width` numbers, of `item` bytes each in memory; ValueError for an unknown wire."""
    if wire not in WIRES:
        raise ValueError(f"wire must be one of {', '.join(WIRES)}, got {wire!r}")
    found = WIRES[wire]
    return -(-width * (found.bits or 8 * item) // 8) + (4 if found.levels else 0)
