"""What a manifest says, and the phases on the way to it."""

import pprint

import numpy as np
import pytest

from distgnn.errors import InputError
from distgnn.partition import partition_graph
from distgnn.partition.folder.manifest import name_bytes, name_rows, names_of

from ..folders import make_graph


def test_progress_reports_phases_and_the_manifest_fits_one_line(tmp_path):
    steps = []
    manifest = partition_graph(make_graph(), 2, tmp_path / "parts", "libra", progress=lambda *step: steps.append(step))
    assert steps == [
        ("load", 0, 1), ("load", 1, 1), ("cut", 0, 1), ("cut", 1, 1), ("write", 0, 2), ("write", 1, 2), ("write", 2, 2),
    ]  # fmt: skip
    shown = f"{manifest}"
    assert shown.startswith("Manifest('random', num_parts=2, num_nodes=35, num_edges=90, method='libra'")
    assert len(shown) < 200 and pprint.pformat(manifest) == shown


@pytest.mark.parametrize("names", [["ann", "böb", ""], [7, -1, 1 << 62], np.array([3, 4], np.uint64)])
def test_names_come_back(names):
    names = np.array(names)
    assert names_of(name_rows(names, name_bytes(names))).tolist() == names.tolist()
    with pytest.raises(InputError, match="9223372036854775808 is beyond 63 bits"):
        name_rows(np.array([1, 1 << 63], np.uint64), 0)
