"""Mt-KaHyPar's cut: laws, balanced arcs, fewer copies than a stream's, and one line where it is missing."""

import pytest

from distgnn.errors import InputError
from distgnn.partition import PartitionBook, cut_edges

from ..core.test_local_graph import every_law
from ..graphs import awkward, edge_list


@pytest.fixture
def kahypar():
    pytest.importorskip("mtkahypar")


@pytest.mark.parametrize(("name", "directed"), [("random", False), ("multigraph", True), ("all isolated", False)])
def test_laws_hold(kahypar, name, directed):
    edges = edge_list(*awkward(name), directed)
    every_law(edges, cut_edges(edges, 3, "kahypar"))


def test_few_copies_at_balanced_arcs(kahypar, graph_named):
    edges = graph_named("communities").edge_list("both")
    ours, stream = (PartitionBook(edges, cut_edges(edges, 4, method)) for method in ("kahypar", "libra"))
    assert ours.edge_balance <= 1.03
    assert ours.replication_factor < stream.replication_factor


def test_where_it_is_not_installed_or_fails_one_line_says_so(monkeypatch):
    edges = edge_list(*awkward("random"))
    monkeypatch.setattr("distgnn.partition.baselines.programs.find_spec", lambda name: None)
    with pytest.raises(InputError, match="method kahypar needs Mt-KaHyPar: pip install mtkahypar"):
        cut_edges(edges, 3, "kahypar")
    monkeypatch.undo()
    monkeypatch.setattr("distgnn.partition.baselines.programs.find_spec", lambda name: True)
    monkeypatch.setattr("distgnn.partition.baselines.programs.KAHYPAR", "import sys; sys.exit('out of memory')")
    with pytest.raises(InputError, match=r"no cut into 3 parts \(out of memory\)"):
        cut_edges(edges, 3, "kahypar")
