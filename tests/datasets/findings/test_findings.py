"""Nothing of a graph is left out in silence, and what is understood is not warned of."""

import warnings

import networkx
import numpy as np
import pytest
import scipy.sparse
import torch

import distgnn as dg
from distgnn.datasets import GraphData, as_graph_data
from distgnn.datasets.findings.cautions import add_training_cautions
from distgnn.datasets.findings.findings import Findings
from distgnn.datasets.names.field_names import DGL_NAMES, OF_NODES, PYG_NAMES
from distgnn.errors import GraphNotice, GraphWarning, InputError
from distgnn.system.other_libraries import import_dgl

PAIRS = np.array([[0, 1], [1, 2], [2, 0], [2, 3], [3, 4]])
FEATS, LABELS = np.arange(10, dtype=np.float32).reshape(5, 2), np.array([0, 1, 1, 0, 2])
MASK = np.array([True, False, False, True, False])


def pyg_data(**columns):
    data = pytest.importorskip("torch_geometric.data").Data(edge_index=torch.from_numpy(PAIRS.T.copy()), num_nodes=5)
    for name, column in columns.items():
        data[name] = torch.from_numpy(column) if isinstance(column, np.ndarray) else column
    return data


def dgl_graph(**columns):
    graph = import_dgl().graph(
        (torch.from_numpy(PAIRS[:, 0].copy()), torch.from_numpy(PAIRS[:, 1].copy())), num_nodes=5
    )
    graph.ndata.update({name: torch.from_numpy(column) for name, column in columns.items()})
    return graph


@pytest.mark.parametrize("name", [*OF_NODES["feats"], *OF_NODES["labels"], *OF_NODES["train"]])
@pytest.mark.parametrize("make", [pyg_data, dgl_graph])
def test_every_synonym_is_taken_and_said_where_it_is_not_the_usual_name(make, name):
    field = next(field for field, names in OF_NODES.items() if name in names)
    column = {"feats": FEATS, "labels": LABELS, "train": MASK}[field]
    usual = (PYG_NAMES if make is pyg_data else DGL_NAMES)[field] == name
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        graph = as_graph_data(make(**{name: column}))
    expected = np.flatnonzero(MASK) if field == "train" else column
    np.testing.assert_array_equal(getattr(graph, field), expected)
    assert [(one.category, f"{field} ← {name}" in str(one.message)) for one in said] == [(GraphNotice, True)] * (
        not usual
    )
    assert [one.filename for one in said] == [__file__] * (not usual)


def test_what_is_left_out_is_named_once_in_one_warning():
    data = pyg_data(x=FEATS, features=FEATS, pos=FEATS, label=LABELS, note="by hand")
    data.edge_time = torch.ones(5)
    with pytest.warns(GraphWarning) as said:
        graph = GraphData.from_pyg(data)
    assert len(said) == 1 and graph.labels.tolist() == LABELS.tolist()
    text = str(said[0].message)
    assert text.startswith("graph 'pyg': labels ← label; left out: ")
    assert all(text.count(name) == 1 for name in ("features ([5, 2])", "pos ([5, 2])", "note (str)", "edge_time ([5])"))
    assert GraphData.from_pyg(data, findings=Findings()).findings.lines() == text.removeprefix("graph 'pyg': ").split(
        "; "
    )


def test_columns_of_edges_are_carried_where_both_arcs_of_an_edge_have_the_same():
    dgl = import_dgl()
    both = dgl.graph(([0, 1, 1, 2], [1, 0, 2, 1]))
    both.edata["weight"] = torch.tensor([0.1 + 0.2, 0.3, 2, 2], dtype=torch.float64)  # 0.30000000000000004 and 0.3
    graph = GraphData.from_dgl(both, directed=False)
    assert graph.edges.tolist() == [[0, 1], [1, 2]] and graph.edge_weight.tolist() == [np.float32(0.3), 2]
    both.edata["weight"][3] = 2.1
    with pytest.raises(InputError, match="the weights are not symmetric: the arcs 1 -> 2 and back differ"):
        GraphData.from_dgl(both, directed=False)


def test_graphs_of_a_batch_keep_their_ids():
    pyg, dgl = pytest.importorskip("torch_geometric.data"), import_dgl()
    one = pyg.Data(x=torch.ones(2, 1), edge_index=torch.tensor([[0], [1]]), y=torch.tensor([1]))
    with pytest.warns(GraphWarning, match=r"left out: y \(one row for each of 3 graphs, not per vertex\)$"):
        batch = GraphData.from_pyg(pyg.Batch.from_data_list([one] * 3))
    assert batch.graph_ids.tolist() == [0, 0, 1, 1, 2, 2] and batch.labels is None
    assert GraphData.from_dgl(dgl.batch([dgl.graph(([0], [1]))] * 2)).graph_ids.tolist() == [0, 0, 1, 1]


@pytest.mark.parametrize("layout", ["to_sparse_coo", "to_sparse_csr", "to_sparse_csc"])
@pytest.mark.filterwarnings("ignore:Sparse")  # of torch, on its own tensors
def test_sparse_tensors_are_matrices_and_adj_t_is_turned(layout):
    dense = torch.zeros(5, 5)
    dense[PAIRS[:, 0], PAIRS[:, 1]] = torch.arange(2.0, 7.0)
    graph = as_graph_data(getattr(dense, layout)(), weighted=True)
    found = {tuple(pair): weight for pair, weight in zip(graph.edges.tolist(), graph.edge_weight.tolist(), strict=True)}
    assert found == {tuple(pair): weight + 2.0 for weight, pair in enumerate(PAIRS.tolist())}
    with pytest.warns(GraphWarning, match="left out: the values"):
        assert as_graph_data(getattr(dense, layout)()).edge_weight is None
    data = pytest.importorskip("torch_geometric.data").Data(adj_t=getattr(dense.T, layout)(), x=torch.ones(5, 1))
    turned = as_graph_data(data)
    assert {tuple(p): w for p, w in zip(turned.edges.tolist(), turned.edge_weight.tolist(), strict=True)} == found


def test_last_vertices_without_edges_are_counted_by_rows():
    graph = GraphData.from_arrays([[0, 1], [1, 2]], x=np.ones((5, 4)), train_mask=np.array([[1], [0], [0], [0], [1]]))
    assert (graph.num_nodes, graph.train.tolist()) == (5, [0, 4])
    assert GraphData.from_arrays([[0, 1], [1, 2]], train=np.array([1, 1, 0, 0, 1], bool)).num_nodes == 5
    assert GraphData.from_arrays([[0, 1], [1, 2]], train=np.array([1, 2])).num_nodes == 3  # ids


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32, np.uint64, np.float64, np.int16])
def test_ids_of_any_type(dtype):
    graph = GraphData.from_arrays(PAIRS.astype(dtype), directed=False)
    assert graph.edges.tolist() == PAIRS.tolist() and graph.edge_list("both").num_arcs == 10
    assert GraphData.from_arrays(PAIRS.astype(dtype)).counts()["num_nodes"] == 5


@pytest.mark.parametrize(
    ("labels", "classes", "names"),
    [
        (["dog", "cat", None, "cat", ""], [1, 0, -1, 0, -1], ("cat", "dog")),
        ([10, 20, 10**9, 20, -1], [0, 1, 2, 1, -1], ("10", "20", "1000000000")),
        ([0, 1, 3, 0, 1], [0, 1, 3, 0, 1], ()),  # a class that happens to be empty
    ],
)
def test_classes_of_texts_and_of_numbers_with_gaps_keep_their_names(labels, classes, names, tmp_path):
    graph = GraphData.from_arrays(PAIRS, feats=FEATS, labels=labels, train=[0, 1], findings=Findings())
    assert (graph.labels.tolist(), graph.class_names) == (classes, names)
    assert bool(graph.findings.lines()) == bool(names)
    again = dg.load_graph(str(graph.save(tmp_path / "graph")))
    assert (again.class_names, again.num_classes) == (names, len(names) or 4)
    manifest = dg.partition_graph(again, 2, tmp_path / "parts", "libra", direction="both")
    assert tuple(manifest["graph"].get("class_names", ())) == names


def test_a_tuple_of_an_edge_index_and_columns_is_a_graph():
    index = torch.from_numpy(PAIRS.T.copy())
    for labels in ((), (LABELS,)):
        graph = as_graph_data((index, FEATS, *labels), Findings())
        assert graph.edges.tolist() == PAIRS.tolist() and graph.feats.tolist() == FEATS.tolist()
        assert (graph.labels is not None) == bool(labels)
    assert as_graph_data((PAIRS[:, 0], PAIRS[:, 1]), Findings()).feats is None  # two columns of ids
    with pytest.raises(InputError, match=r"found \[4, 2\]: do vertex ids start at 1"):
        as_graph_data((index, FEATS[:4]), Findings())


CAUTIONS = {
    "one-hot labels": (
        lambda: GraphData.from_arrays(PAIRS, labels=np.eye(5, dtype=np.int64), findings=Findings()),
        "each has exactly one: give labels.argmax",
    ),
    "ids from 1": (lambda: GraphData.from_arrays(PAIRS + 1, findings=Findings()), "ids seem to start at 1"),
    "labels from 1": (
        lambda: GraphData.from_arrays(PAIRS, labels=LABELS + 1, findings=Findings()), "labels seem to start at 1",
    ),
    "labels are ids": (
        lambda: GraphData.from_arrays(PAIRS % 99, 99, labels=np.arange(99), findings=Findings()), "99 classes for",
    ),
    "isolated": (lambda: GraphData.from_arrays(PAIRS, 40, findings=Findings()), "35 of 40 vertices have no edge"),
    "large integers": (
        lambda: GraphData.from_arrays(PAIRS, feats=np.full((5, 1), 1 << 30), findings=Findings()), "are rounded to",
    ),
    "weights of nothing": (
        lambda: GraphData.from_arrays(PAIRS, edge_weight=[1, 0, 1e-300, -1e-50, 1e-40], findings=Findings()),
        "edge_weight holds 1e-300, which is 0 in float32; scale it (2 such numbers)",
    ),
    "features of nothing": (
        lambda: GraphData.from_scipy(
            scipy.sparse.eye(5), feats=scipy.sparse.eye(5) * 1e-300, directed=False, findings=Findings()
        ),
        "feats holds 1e-300, which is 0 in float32",
    ),
    "stored zeros": (
        lambda: GraphData.from_scipy(
            scipy.sparse.coo_matrix(([0, 1], ([0, 1], [1, 0]))), findings=Findings(), weighted=False
        ),
        "1 stored zeros are edges",
    ),
    "entries twice": (
        lambda: GraphData.from_scipy(scipy.sparse.coo_matrix(([1, 1], ([0, 0], [1, 1])), (2, 2)), findings=Findings()),
        "1 entries are there twice",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("make", "text"), CAUTIONS.values(), ids=CAUTIONS)
def test_what_is_suspicious_is_said_once(make, text):
    assert [text in line for line in make().findings.lines() if line.startswith("caution")].count(True) == 1


@pytest.mark.parametrize(
    ("direction", "split", "edges", "said"),
    [
        ("stored", None, "one-way", ["travel one way", "no vertex is for training: --split 0.6,0.2,0.2"]),
        ("both", None, "one-way", ["no vertex is for training"]),
        (
            "stored",
            "0.6,0.2,0.2",
            "both ways",
            ["by seed 7, stratified by class: train 30, valid 10, test 10"],
        ),
    ],
)
def test_what_training_would_not_expect_is_said_when_the_graph_is_cut(direction, split, edges, said, tmp_path):
    ends = np.random.default_rng(0).integers(0, 50, (100, 2))
    ends = ends if edges == "one-way" else np.concatenate([ends, ends[:, ::-1]])
    graph = GraphData.from_arrays(ends, 50, feats=np.ones((50, 2)), labels=np.arange(50) % 3)
    lines: list[str] = []
    options = {"direction": direction, "split": split, "seed": 7, "say": lines.append}
    manifest = dg.partition_graph(graph, 2, tmp_path / "parts", "libra", **options)
    assert len(lines) == len(said) and all(text in line for text, line in zip(said, lines, strict=True))
    assert manifest["graph"]["train"] == (30 if split else 0)
    if split is None and direction == "stored":
        with pytest.warns(GraphWarning, match="travel one way .*no vertex is for training") as warned:
            dg.partition_graph(graph, 2, tmp_path / "again", "libra")
        assert [one.filename for one in warned] == [__file__]


def test_small_numbers_of_a_mapped_file_are_said_to_become_zeros(tmp_path):
    folder = GraphData.from_arrays(PAIRS, feats=FEATS).save(tmp_path / "graph")
    np.save(folder / "feats.npy", FEATS.astype(np.float64) * 1e-300)
    with pytest.warns(GraphWarning, match=r"caution: feats holds 1e-300, which is 0 in float32; scale it .9 such"):
        dg.load_graph(folder)


def test_a_table_has_all_that_is_wrong_at_once(capsys):
    feats, weight = FEATS.astype(np.float64), np.ones(5)
    feats[[1, 3]], weight[4] = np.nan, 1e39
    findings = dg.check_graph(
        PAIRS, feats=feats, edge_weight=weight, labels=[0, 1, 2, -7, 0], train=[0, 99], valid_mask=[True] * 4
    )
    wrong = {one.field: one.count for one in findings.wrong}
    assert wrong == {"edge_weight": 1, "feats": 2, "labels": 1, "valid": 0, "train, valid, test": 1}
    table = capsys.readouterr().out
    assert table.startswith("finding ") and all(f"row {row} " in table for row in (1, 3, 4))
    assert [one.field for one in dg.check_graph([["ann", "bob"]]).wrong] == ["edges", "num_nodes"]
    assert not dg.check_graph(networkx.path_graph(4)).wrong
    assert dg.check_graph("no such graph").wrong
    findings = dg.check_graph(PAIRS, labels=[0, 1, -1, 0, 1], num_nodes=6, x=None)
    assert {one.field: one.count for one in findings if one.severity == "wrong"} == {"labels": 0}


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        (np.array([0, 1, 1, 2, 2]), "1, first 2; vertices for validation or test of such a class: 1"),
        (np.array(["a", "a", "b", "c", "c"]), "2, first b; vertices for validation or test of such a class: 2"),
        (np.array([0, 1, 1, -1, 1]), None),
    ],
)
def test_classes_that_no_vertex_for_training_has_are_said_when_the_graph_is_cut(labels, said, tmp_path):
    graph = GraphData.from_arrays(PAIRS, 5, labels=labels, train=[0, 1], valid=[2], test=[3], findings=Findings())
    lines: list[str] = []
    dg.partition_graph(graph, 1, tmp_path / "parts", "libra", direction="both", say=lines.append)
    assert [said in line for line in lines if "no model learns" in line] == ([True] if said else [])


def test_weights_whose_sums_no_float32_holds_are_named():
    """GCN divides by such a sum, which is infinite: its rows are 0, and the loss is flat."""
    for weight, named in ((1e38, True), (1e37, False)):
        findings = dg.check_graph([[0, 3], [1, 3], [2, 3], [4, 3]], edge_weight=np.full(4, weight, np.float32))
        assert any("weights of a vertex add up to 4e+38" in line for line in findings.lines()) == named


@pytest.mark.parametrize(("labels", "head"), [(None, "no features"), ([0, 1, 0, 1, 0], "caution: no features")])
@pytest.mark.parametrize("feats", [None, np.ones((5, 1), np.float32)])
def test_a_graph_without_features_is_named_when_it_is_cut(labels, head, feats, tmp_path):
    """`train` refuses its parts."""
    lines: list[str] = []
    graph = GraphData.from_arrays(PAIRS, 5, feats=feats, labels=labels, findings=Findings())
    dg.partition_graph(graph, 1, tmp_path / "parts", "libra", direction="both", say=lines.append)
    assert any(line.startswith(f"{head}: train and fit need") for line in lines) == (feats is None)


@pytest.mark.parametrize("carried", [{}, {"edge_weight": np.ones(40)}, {"edge_feats": np.ones((40, 2))}])
def test_cautions_of_a_training_give_advice_that_works(carried):
    """Direction both merges no edges that carry numbers."""
    edges = np.stack([np.arange(40), (np.arange(40) + 1) % 40]).T
    graph = dg.GraphData.from_arrays(edges, labels=np.arange(40) % 3, findings=Findings(), **carried)
    add_training_cautions(graph, "stored")
    lines = graph.findings.lines()
    assert any("--direction both" in line for line in lines) == (not carried)
    assert any("store both arcs of each edge" in line for line in lines) == bool(carried)
