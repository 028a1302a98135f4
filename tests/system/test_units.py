"""Sizes as people write them."""

import pytest

from distgnn.errors import InputError
from distgnn.system.units import parse_bytes


@pytest.mark.parametrize(
    ("text", "count"),
    [("8GB", 8 * 10**9), ("512 MiB", 512 * 2**20), ("1.5gb", 15 * 10**8), ("600M", 6 * 10**8), ("7", 7), (9, 9)],
)
def test_sizes(text, count):
    assert parse_bytes(text) == count


@pytest.mark.parametrize("text", ["", "GB", "-1GB", "8 parsecs", "0", "1e400", "1e9", "lots", "9" * 400])
def test_what_is_no_size(text):
    with pytest.raises(InputError, match="expected a size such as 8GB"):
        parse_bytes(text)
