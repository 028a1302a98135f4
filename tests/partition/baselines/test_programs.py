"""METIS and Mt-KaHyPar, in programs of their own: laws, balances, and one line where one is missing or fails."""

import numpy as np
import pytest

from distgnn.errors import InputError
from distgnn.partition import PartitionBook, cut_edges

from ..graphs import awkward, edge_list
from ..laws import every_law

PROGRAMS = "distgnn.partition.baselines.programs"


@pytest.mark.parametrize(
    ("method", "name", "directed"),
    [
        ("kahypar", "random", False),
        ("kahypar", "multigraph", True),
        ("kahypar", "all isolated", False),
        ("metis", "random", False),
        ("metis", "random", True),
    ],
)
def test_laws_hold(method, name, directed):
    pytest.importorskip({"kahypar": "mtkahypar", "metis": "pymetis"}[method])
    edges = edge_list(*awkward(name), directed)
    cut = cut_edges(edges, 3, method, seed=2)
    every_law(edges, cut)
    if method == "metis":
        np.testing.assert_array_equal(cut.edge_part, cut_edges(edges, 3, "metis", seed=2).edge_part)


def test_few_copies_at_balanced_arcs(graph_named):
    pytest.importorskip("mtkahypar")
    edges = graph_named("communities").edge_list("both")
    ours, stream = (PartitionBook(edges, cut_edges(edges, 4, method)) for method in ("kahypar", "libra"))
    assert ours.edge_balance <= 1.03
    assert ours.replication_factor < stream.replication_factor


@pytest.mark.parametrize("method", ["kahypar", "metis"])
def test_a_failure_is_one_line(method, monkeypatch):
    monkeypatch.setattr(f"{PROGRAMS}.find_spec", lambda name: True)
    monkeypatch.setattr(f"{PROGRAMS}.{method.upper()}", "import sys; sys.exit('out of memory')")
    with pytest.raises(InputError, match=r"no cut into 3 parts \(out of memory\)"):
        cut_edges(edge_list(*awkward("random")), 3, method)


def test_where_it_is_not_installed_one_line_says_so(monkeypatch):
    monkeypatch.setattr(f"{PROGRAMS}.find_spec", lambda name: None)
    with pytest.raises(InputError, match="method kahypar needs Mt-KaHyPar: pip install mtkahypar"):
        cut_edges(edge_list(*awkward("random")), 3, "kahypar")
