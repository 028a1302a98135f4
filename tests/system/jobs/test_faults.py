"""The table of faults names files that say what it says."""

from pathlib import Path

import pytest

import distgnn
from distgnn.system.jobs.faults import FAULTS


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.what)
def test_a_fault_is_said_where_the_table_says(fault):
    assert fault.said in (Path(distgnn.__file__).parent / fault.noticed_by).read_text(encoding="utf-8")
