"""Names of contenders: an algorithm, and words behind slashes."""

import pytest

from distgnn.bench.contenders import Contender, parse_contenders
from distgnn.config import Settings
from distgnn.errors import InputError


def test_names():
    found = {one.name: one for one in parse_contenders(["cd-5", "cd-1/int8", "cd-5/suppressed"])}
    assert list(found) == ["cd-0", "cd-5", "cd-1/int8", "cd-5/suppressed"]
    assert found["cd-1/int8"].settings(Settings()).schedule.wires == ("int8", "int8")
    assert [one.suppressed for one in found.values()] == [False] * 3 + [True]
    careful = Contender.parse("cd-2/int4/backward=int8/late-row-average=0.5/warmup=3").settings(Settings()).schedule
    assert (careful.wires, careful.late_row_average, careful.warmup_epochs) == (("int4", "int8"), 0.5, 3)
    for wrong, says in {
        "cd-2/int3": "unknown word 'int3': choose from float32",
        "cd-2/int4/int8": "int4 and int8 are both given",
        "cd-2/late-row-average=much": "late-row-average=much is not a number",
        "fast": "unknown algorithm 'fast': choose from cd-0, cd-R",
    }.items():
        with pytest.raises(InputError, match=says):
            Contender.parse(wrong)
