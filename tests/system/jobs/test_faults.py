"""The table of faults names files that say what it says."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "internals" / "faults.md").read_text(encoding="utf-8")
TABLE = PAGE.partition("<!-- table: who -->\n")[2].partition("\n\n")[0]
FAULTS = [[cell.strip(" `") for cell in line.strip("|").split(" | ")] for line in TABLE.splitlines()[2:]]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault[0])
def test_a_fault_is_said_where_the_table_says(fault):
    _, file, _, said = fault
    assert said in (ROOT / file).read_text(encoding="utf-8")


def test_the_table_is_found():
    assert len(FAULTS) > 10
