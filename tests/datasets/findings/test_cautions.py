"""What is suspicious in a graph is said, once, and with advice that works."""

import numpy as np
import pytest
import scipy.sparse

import distgnn as dg
from distgnn.datasets import GraphData
from distgnn.datasets.findings.cautions import add_training_cautions
from distgnn.datasets.findings.findings import Findings
from distgnn.errors import GraphWarning

PAIRS = np.array([[0, 1], [1, 2], [2, 0], [2, 3], [3, 4]])
LABELS = np.array([0, 1, 1, 0, 2])


def made(edges=PAIRS, num_nodes=None, **fields):
    return GraphData.from_arrays(edges, num_nodes, findings=Findings(), **fields)


def of_scipy(matrix, **fields):
    return GraphData.from_scipy(matrix, findings=Findings(), **fields)


def cut_lines(graph, folder, **options) -> list[str]:
    """What is said when a graph is cut."""
    lines: list[str] = []
    dg.partition_graph(graph, 1, folder / "parts", "libra", say=lines.append, **options)
    return lines


TINY, SPARSE = scipy.sparse.eye(5) * 1e-300, scipy.sparse.coo_matrix
CAUTIONS = {
    "one-hot labels": (lambda: made(labels=np.eye(5, dtype=np.int64)), "each has exactly one: give labels.argmax"),
    "ids from 1": (lambda: made(PAIRS + 1), "ids seem to start at 1"),
    "labels from 1": (lambda: made(labels=LABELS + 1), "labels seem to start at 1"),
    "labels are ids": (lambda: made(PAIRS % 99, 99, labels=np.arange(99)), "99 classes for"),
    "isolated": (lambda: made(PAIRS, 40), "35 of 40 vertices have no edge"),
    "large integers": (lambda: made(feats=np.full((5, 1), 1 << 30)), "are rounded to"),
    "weights of nothing": (
        lambda: made(edge_weight=[1, 0, 1e-300, -1e-50, 1e-40]),
        "edge_weight holds 1e-300, which is 0 in float32; scale it (2 such numbers)",
    ),
    "features of nothing": (lambda: of_scipy(scipy.sparse.eye(5), feats=TINY), "feats holds 1e-300, which is 0 in"),
    "stored zeros": (lambda: of_scipy(SPARSE(([0, 1], ([0, 1], [1, 0])))), "1 stored zeros are edges"),
    "entries twice": (lambda: of_scipy(SPARSE(([1, 1], ([0, 0], [1, 1])), (2, 2))), "1 entries are there twice"),
}


@pytest.mark.parametrize(("make", "text"), CAUTIONS.values(), ids=CAUTIONS)
def test_what_is_suspicious_is_said_once(make, text):
    assert [text in line for line in make().findings.lines() if line.startswith("caution")].count(True) == 1


@pytest.mark.parametrize(
    ("direction", "split", "edges", "said"),
    [
        ("stored", None, "one-way", ["travel one way", "no vertex is for training: --split 0.6,0.2,0.2"]),
        ("both", None, "one-way", ["no vertex is for training"]),
        ("stored", "0.6,0.2,0.2", "both ways", ["by seed 7, stratified by class: train 30, valid 10, test 10"]),
    ],
)
def test_what_training_would_not_expect_is_said_when_the_graph_is_cut(direction, split, edges, said, tmp_path):
    ends = np.random.default_rng(0).integers(0, 50, (100, 2))
    ends = ends if edges == "one-way" else np.concatenate([ends, ends[:, ::-1]])
    graph = GraphData.from_arrays(ends, 50, feats=np.ones((50, 2)), labels=np.arange(50) % 3)
    lines = cut_lines(graph, tmp_path, direction=direction, split=split, seed=7)
    assert len(lines) == len(said) and all(text in line for text, line in zip(said, lines, strict=True))
    assert dg.partition.read_manifest(tmp_path / "parts")["graph"]["train"] == (30 if split else 0)
    if split is None and direction == "stored":
        with pytest.warns(GraphWarning, match="travel one way .*no vertex is for training") as warned:
            dg.partition_graph(graph, 2, tmp_path / "again", "libra")
        assert [one.filename for one in warned] == [__file__]


def test_small_numbers_of_a_mapped_file_are_said_to_become_zeros(tmp_path):
    folder = GraphData.from_arrays(PAIRS, feats=np.ones((5, 2), np.float32)).save(tmp_path / "graph")
    np.save(folder / "feats.npy", np.arange(10.0).reshape(5, 2) * 1e-300)
    with pytest.warns(GraphWarning, match=r"caution: feats holds 1e-300, which is 0 in float32; scale it .9 such"):
        dg.load_graph(folder)


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        (np.array([0, 1, 1, 2, 2]), "1, first 2; vertices for validation or test of such a class: 1"),
        (np.array(["a", "a", "b", "c", "c"]), "2, first b; vertices for validation or test of such a class: 2"),
        (np.array([0, 1, 1, -1, 1]), None),
    ],
)
def test_classes_that_no_vertex_for_training_has_are_said_when_the_graph_is_cut(labels, said, tmp_path):
    lines = cut_lines(made(labels=labels, train=[0, 1], valid=[2], test=[3]), tmp_path, direction="both")
    assert [said in line for line in lines if "no model learns" in line] == ([True] if said else [])


@pytest.mark.parametrize(("labels", "head"), [(None, "no features"), ([0, 1, 0, 1, 0], "caution: no features")])
@pytest.mark.parametrize("feats", [None, np.ones((5, 1), np.float32)])
def test_a_graph_without_features_is_named_when_it_is_cut(labels, head, feats, tmp_path):
    """`train` refuses its parts."""
    lines = cut_lines(made(feats=feats, labels=labels), tmp_path, direction="both")
    assert any(line.startswith(f"{head}: train and fit need") for line in lines) == (feats is None)


@pytest.mark.parametrize("carried", [{}, {"edge_weight": np.ones(40)}, {"edge_feats": np.ones((40, 2))}])
def test_cautions_of_a_training_give_advice_that_works(carried):
    """Direction both merges no edges that carry numbers."""
    graph = made(np.stack([np.arange(40), (np.arange(40) + 1) % 40]).T, labels=np.arange(40) % 3, **carried)
    add_training_cautions(graph, "stored")
    lines = graph.findings.lines()
    assert any("--direction both" in line for line in lines) == (not carried)
    assert any("store both arcs of each edge" in line for line in lines) == bool(carried)
