"""Tables as text: every way to write one, blocks, packed files; a bad line is named."""

import gzip

import numpy as np
import pytest

from distgnn.datasets import array_files, text_table
from distgnn.datasets.text_table import read_table
from distgnn.errors import GraphFormatError, InputError


@pytest.fixture
def table(tmp_path):
    """A function that reads a table of this text; packed: of these bytes, as .gz."""

    def read(text="", dtype=np.int64, packed=None, **options) -> np.ndarray:
        path = tmp_path / ("table.csv" if packed is None else "table.csv.gz")
        path.write_bytes((text if isinstance(text, bytes) else text.encode()) if packed is None else packed)
        return read_table(path, dtype, **options)

    return read


SAME = ["1,2\n3,4\n", "1 2\r\n3 4", "1\t2\n\n3\t4\n", "# x\n1, 2\n% y\n3 ,4\n", "u,v\n1;2\n3;4\n", "\ufeff1,2\n3,4\n"]


@pytest.mark.parametrize("text", SAME)
def test_ways_to_write_the_same_table(table, text):
    assert table(text, columns=2).tolist() == [[1, 2], [3, 4]]


def test_packed_in_several_members_empty_and_signed(table):
    assert table(packed=gzip.compress(b"1,2\n3,") + gzip.compress(b"4\n")).tolist() == [[1, 2], [3, 4]]
    assert table("", columns=2).shape == (0, 2)
    assert table("-5\n+7\n999999999999999999\n").ravel().tolist() == [-5, 7, 999999999999999999]


def test_floats_are_read_as_python_reads_them(table):
    rng = np.random.default_rng(0)
    values = np.concatenate([rng.standard_normal(2000), 10 ** rng.uniform(-35, 35, 2000), [0, -0.0, 1e300, 5e-324]])
    for style in (repr, "{:.6g}".format, "{:.18e}".format, "{:.3f}".format):
        words = [style(float(value)) for value in values if abs(value) < 1e38]
        expected = np.array([np.float32(float(word)) for word in words])
        assert np.array_equal(table("\n".join(words), np.float32).ravel(), expected)


def test_words_and_empty_fields(table):
    result = table("1,,nan\n-inf,Infinity,.5\n,2,\n", np.float64)
    assert np.array_equal(result, [[1, np.nan, np.nan], [-np.inf, np.inf, 0.5], [np.nan, 2, np.nan]], equal_nan=True)


def test_blocks_end_anywhere(table, monkeypatch):
    values = np.random.default_rng(1).integers(0, 10**6, (60, 3))
    text = "\n".join(",".join(map(str, row)) for row in values)
    for block in (1, 7, 64, 1000):
        monkeypatch.setattr(text_table, "BLOCK", block)
        assert np.array_equal(table(text), values)
        assert np.array_equal(table(text, rows=60), values)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1,2\n3,x\n", r"line 2: expected 2 whole numbers, found '3,x'"),
        ("1,2\n3\n", r"line 2: expected 2 whole numbers, found '3'"),
        ("1,2\n3,4,5\n", r"line 2: expected 2 whole numbers, found '3,4,5'"),
        ("1,2\n3,4.5\n", r"line 2: expected 2 whole numbers"),
        ("1,2\n3,\n", r"line 2: expected 2 whole numbers"),
        ("1,2\n3,99999999999999999999\n", r"line 2"),
        ("# c\nu v\n1,2\nx\n", r"line 4"),
        ("1,2\n" * 300 + "7\n", "line 301: expected 2 whole numbers, found '7'"),
        ("1,2\r\n3,4\r5,6\n", r"line 2: lines end in CR alone"),
        ("1,2\n# c\r3,4\n", r"line 2: lines end in CR alone"),
        ("u,v\r1,2\n", r"line 1: lines end in CR alone"),
        (b"0,5;1,5\n2,5;1,0\n", "line 1: 0,5 has a decimal comma: write 0.5"),  # it would be two columns
        (b"sep=;\n0;1\n", "line 1: sep= is Excel's word"),
        ("0,1\n".encode("utf-16"), "of UTF-16"),
    ],
)
def test_bad_lines_are_named(table, text, message, monkeypatch):
    monkeypatch.setattr(text_table, "BLOCK", 64)
    with pytest.raises(GraphFormatError, match=message):
        table(text, columns=2)


@pytest.mark.parametrize(("rows", "says"), [(3, "expected 3 rows, found 2"), (1, "more than the 1 rows")])
def test_row_counts_are_checked(table, rows, says):
    with pytest.raises(GraphFormatError, match=says):
        table("1\n2\n", rows=rows)


def test_a_damaged_archive_is_named(table):
    with pytest.raises(GraphFormatError, match=r"table\.csv\.gz: damaged"):
        table(packed=gzip.compress(b"1,2\n" * 1000)[:-12])


def test_a_line_without_end_is_refused_early(table, monkeypatch):
    """13 MB of .gz without a newline unpack to 13 GB, and took quadratic time to be joined."""
    monkeypatch.setattr(text_table, "BLOCK", 1000)
    monkeypatch.setattr(text_table, "LONGEST_LINE", 1 << 20)
    with pytest.raises(GraphFormatError, match=r"table\.csv\.gz: a line is longer than 1 MiB; this is no table"):
        table(packed=gzip.compress(b"1 " * (1 << 22)))


@pytest.mark.parametrize("rows", [None, 100_000])
def test_a_table_that_unpacks_beyond_the_free_memory_is_refused(table, monkeypatch, rows):
    monkeypatch.setattr(array_files, "available_bytes", lambda: 1_000_000)
    with pytest.raises(InputError, match=r"table\.csv\.gz: unpacks to more than the 0\.001 GB of memory that are free"):
        table(packed=gzip.compress(b"0 0\n" * 100_000), columns=2, rows=rows)
