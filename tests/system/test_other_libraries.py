"""Where DGL is not there, one line says why."""

import sys

import pytest

import distgnn as dg
from distgnn.errors import InputError
from distgnn.system import other_libraries as place

GRAPH = dg.GraphData.from_arrays([(0, 1)], 2)


@pytest.mark.parametrize("call", [dg.import_dgl, GRAPH.to_dgl], ids=["import_dgl", "GraphData.to_dgl"])
@pytest.mark.parametrize(
    ("version", "says"),
    [((3, 13, 1), "no package for Python 3.13: use Python 3.10 or 3.11"), ((3, 11, 7), "pip install dgl==1.1.3")],
)
def test_python_that_has_no_dgl_is_named(call, version, says, monkeypatch):
    monkeypatch.setitem(sys.modules, "dgl", None)  # importing it fails
    monkeypatch.setattr(place, "PYTHON", version[:2])
    with pytest.raises(InputError) as caught:
        call()
    assert says in str(caught.value) and "\n" not in str(caught.value)
