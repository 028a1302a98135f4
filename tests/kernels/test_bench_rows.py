"""What `distgnn bench-kernels` prints, without timing anything that matters."""

import pytest

from distgnn.bench.kernels import interleaved, run, table
from distgnn.errors import InputError


def test_functions_run_in_turn():
    calls = []
    medians = interleaved({"a": lambda: calls.append("a"), "b": lambda: calls.append("b")}, 3)
    assert calls == ["a", "b"] * 3 and set(medians) == {"a", "b"}


def test_unknown_names_are_refused():
    with pytest.raises(InputError, match="cora"):
        run(("cora",))
    with pytest.raises(InputError, match="fft"):
        run(operations=("fft",))


def test_table_has_a_line_for_each_row():
    row = {"graph": "rmat", "operation": "sum", "width": 16, "seconds": {"dgl": 0.2, "f32": 0.1, "bf16": 0.05}}
    rates = {"ratio": 2.0, "gigabytes_per_second": 30.0, "share_of_copy": 0.9, "share_of_gather": float("nan")}
    assert table([{**row, **rates}, {**row, **rates}]).row_count == 2
