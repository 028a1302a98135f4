"""Write the table of a part's files in docs/formats.md from `PART_ARRAYS`: `python tests/house/make_formats.py`."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "formats.md"
BEGIN, END = "<!-- from partition/core/part_arrays.py -->\n", "<!-- end -->\n"


def page() -> str:
    """The page as the table is now."""
    sys.path.insert(0, str(ROOT))
    from distgnn.partition.core.part_arrays import PART_ARRAYS

    before, _, rest = PAGE.read_text().partition(BEGIN)
    rows = ["| file | dtype | shape | what | where there is |", "|---|---|---|---|---|"]
    for array in PART_ARRAYS:
        dtype, shape = "/".join(array.dtypes), array.shape.replace(" ", ", ")
        where = f"`{array.when}`" if array.when else "always"
        rows.append(f"| `{array.name}.npy` | {dtype} | [{shape}] | {array.says} | {where} |")
    return before + BEGIN + "\n".join(rows) + "\n" + END + rest.partition(END)[2]


if __name__ == "__main__":
    PAGE.write_text(page())
