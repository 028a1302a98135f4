import numpy as np
import pytest

from distgnn.datasets import GraphData, load_graph
from distgnn.datasets.findings.findings import Findings
from distgnn.errors import InputError
from distgnn.partition import partition_graph
from distgnn.partition.repartition import load_whole

EDGES = [[0, 1], [1, 2]]


def test_labelled_vertices_are_dealt_out_by_the_seed():
    labels = np.where(np.arange(100) < 90, np.arange(100) % 4, -1)
    graph = GraphData.from_arrays(EDGES * 50 + [[98, 99]], 100, labels=labels, findings=Findings())
    first, again, other = (graph.split_nodes(0.5, 0.2, 0.3, seed=seed) for seed in (1, 1, 2))
    parts = [first.train, first.valid, first.test]
    assert [len(part) for part in parts] == [45, 18, 27]
    assert sorted(np.concatenate(parts).tolist()) == list(range(90))
    assert np.array_equal(first.train, again.train) and not np.array_equal(first.train, other.train)
    values = GraphData.from_arrays(EDGES, node_values=[1.0, np.nan, 2.0]).split_nodes(0.5, 0, 0.5)
    assert sorted([*values.train, *values.test]) == [0, 2]


@pytest.mark.parametrize("shares", [(0.6, 0.2, 0.2), (0.05, 0.15, 0.5), (1, 0, 0)])
def test_every_class_has_its_share(shares):
    sizes = [500, 60, 7, 1]  # a rare class too
    labels = np.random.default_rng(0).permutation(np.repeat(np.arange(4), sizes))
    graph = GraphData.from_arrays([[0, 1]], len(labels), labels=labels, findings=Findings())
    split = graph.split_nodes(*shares, seed=3)
    for share, part in zip(shares, (split.train, split.valid, split.test), strict=True):
        counts = np.bincount(labels[part], minlength=4)
        assert np.abs(counts - share * np.array(sizes)).max() < 2  # the nearest whole numbers above or below, of three


@pytest.mark.parametrize("shares", [(0, 0.5, 0.5), (0.9, 0.2, 0.1), (-0.1, 0.5, 0.5), (0.1, 0.1, 0.1)])
def test_shares_that_are_none_are_refused(shares):
    with pytest.raises(InputError, match=r"expected three shares|too few for this split"):
        GraphData.from_arrays(EDGES, labels=[0, 1, 0]).split_nodes(*shares)


@pytest.mark.parametrize("library", ["pyg", "dgl", "arrays", "folder"])
@pytest.mark.parametrize("test", [[2, 3], [3]])
def test_validation_and_test_may_share_vertices(library, test, tmp_path):
    """As in scripts with val_mask = test_mask: taken, with one line, and kept in the parts."""
    splits = {"train": [0, 1], "valid": [2, 3], "test": test}
    made = GraphData.from_arrays(EDGES, num_nodes=5, x=np.eye(5), y=[0, 1, 0, 1, 0], findings=Findings(), **splits)
    source = made
    if library in ("pyg", "dgl"):
        source = getattr(made, f"to_{library}")()
    elif library == "folder":
        source = str(made.save(tmp_path / "g"))
    findings = Findings()
    graph = load_graph(source, findings=findings)
    assert graph.valid.tolist() == [2, 3] and graph.test.tolist() == test and graph.counts()["no_split"] == 1
    if library != "arrays":
        text = f"validation and test have {len(test)} vertices in common"
        assert sum(text in line for line in findings.lines()) == 1
    partition_graph(graph, 2, tmp_path / "parts", "random", say=lambda line: None)
    again = load_whole(tmp_path / "parts").graph
    assert (again.valid.tolist(), again.test.tolist()) == ([2, 3], test)
