"""What `distgnn bench-kernels` prints, without timing anything that matters."""

import pytest

from distgnn.bench.kernels import interleaved, run, summarise, summary_table, table
from distgnn.errors import InputError


def test_functions_run_in_turn():
    calls = []
    times = interleaved({"a": lambda: calls.append("a"), "b": lambda: calls.append("b")}, 3)
    assert calls == ["a", "b"] * 3 and {name: len(calls) for name, calls in times.items()} == {"a": 2, "b": 2}


def test_unknown_names_are_refused():
    with pytest.raises(InputError, match="cora"):
        run(("cora",))
    with pytest.raises(InputError, match="fft"):
        run(operations=("fft",))


def row(width, dgl, ours):
    rates = {"gigabytes_per_second": 30.0, "share_of_copy": 0.9, "share_of_gather": float("nan"), "scaling": 1.9}
    seconds = {"dgl": dgl, "f32": ours, "bf16": ours / 2}
    return {
        "graph": "rmat",
        "operation": "sum",
        "width": width,
        "seconds": seconds,
        "fastest": seconds,
        "ratio": dgl / ours,
        **rates,
    }


def test_table_has_a_line_for_each_row():
    assert table([row(16, 0.2, 0.1), row(47, 0.2, 0.1)]).row_count == 2


def test_summary_has_geometric_means():
    found = {line[0]: line[1:] for line in summarise([row(16, 0.1, 0.1), row(47, 0.4, 0.1)])}
    assert set(found) == {"sum, same order", "sum of bfloat16 rows"}
    line = (2, pytest.approx(2), pytest.approx(2), 1, "rmat 16", pytest.approx(4), 1.8)
    assert found["sum, same order"] == line
    assert summary_table([row(16, 0.1, 0.1)]).row_count == 2
