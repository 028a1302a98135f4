"""Write docs/part-files.md, the table of a part's files, from `PART_ARRAYS`: `python tests/house/make_formats.py`."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "part-files.md"
HEAD = """# The files of a part

Generated from `partition/core/part_arrays.py` by `tests/house/make_formats.py`.
Layout: [formats](formats.md#partition-folder).

Letters: V local rows, O owned, T target halos, A arcs, P parts, D feature width, De of edge features, C classes, W
values, B bytes of a name, m and k pairs, K targets; n: as many as the array beside it says. "Where": what the `graph`
section of `partition.json` has.

A typed graph has its columns by type and relation, in place of features, labels, values and splits of all vertices:
`type_0_feats.npy` (CSR: `…_indptr`, `…_indices`, `…_data`), `type_0_labels.npy`, `…_values`, `…_names`,
`…_train_mask`, … of type 0, in the order of its owned rows; `relation_0_weight.npy` and `relation_0_feat.npy` of
relation 0, in the order of its arcs.
"""


def page() -> str:
    """The page as the table is now."""
    sys.path.insert(0, str(ROOT))
    from distgnn.partition.core.part_arrays import PART_ARRAYS

    rows = ["| file | dtype | shape | what | where there is |", "|---|---|---|---|---|"]
    for array in PART_ARRAYS:
        dtype, shape = "/".join(array.dtypes), array.shape.replace(" ", ", ")
        where = f"`{array.when}`" if array.when else "always"
        rows.append(f"| `{array.name}.npy` | {dtype} | [{shape}] | {array.says} | {where} |")
    return "\n".join([HEAD, *rows, ""])


if __name__ == "__main__":
    PAGE.write_text(page())
