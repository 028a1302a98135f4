"""Names that become paths stay inside the folder they are for."""

import pytest

from distgnn.errors import InputError
from distgnn.system.regular_file import path_name


@pytest.mark.parametrize("name", ["cora", "ogbn-arxiv", "communities:nodes=3", "a b", "größe", "x" * 200])
def test_good_names(name):
    assert path_name(name, "graph") == name


@pytest.mark.parametrize(
    "name",
    ["", ".", "..", "../x", "../../x", "/abs/x", "a/b", "a\\b", ".hidden", "a\0b", "a\nb", "\x1b[2J", "\ud800",
     "x" * 201, "ä" * 101, None, 3],
)  # fmt: skip
def test_names_that_lead_elsewhere(name):
    with pytest.raises(InputError, match="cannot name a file") as error:
        path_name(name, "graph")
    assert str(error.value).isprintable()
