"""Values of any library and type as numpy arrays; what is none is refused."""

from decimal import Decimal

import numpy as np
import pytest
import scipy.sparse
import torch

from distgnn.datasets import GraphData, as_graph_data, load_graph
from distgnn.datasets.findings.findings import Findings
from distgnn.errors import GraphWarning, InputError

pyg = pytest.importorskip("torch_geometric.data")
PAIRS = np.array([[0, 1], [1, 2], [2, 0], [2, 3], [3, 4]])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_tensors_of_any_float_type(dtype):
    feats = torch.arange(10).reshape(5, 2)
    columns = {"labels": torch.tensor([0, 1, 0, 1, 0]), "train": torch.tensor([0])}
    graph = GraphData.from_arrays(PAIRS, feats=feats.to(dtype).requires_grad_(), **columns)
    assert (graph.feats.tolist(), graph.labels.tolist()) == (feats.tolist(), [0, 1, 0, 1, 0])


@pytest.mark.parametrize("value", [Decimal(1), object()])
def test_objects_that_are_no_numbers_are_refused(value):
    with pytest.raises(InputError, match=f"labels: a {type(value).__name__} is no number, text or row of numbers"):
        as_graph_data(PAIRS, labels=[value] * 5)


@pytest.mark.parametrize("layout", ["to_sparse_coo", "to_sparse_csr", "to_sparse_csc"])
@pytest.mark.filterwarnings("ignore:Sparse")  # of torch, on its own tensors
def test_sparse_tensors_are_matrices_and_adj_t_is_turned(layout):
    dense = torch.zeros(5, 5)
    dense[PAIRS[:, 0], PAIRS[:, 1]] = torch.arange(2.0, 7.0)
    matrix = getattr(dense, layout)()
    turned = pyg.Data(adj_t=getattr(dense.T, layout)(), x=torch.ones(5, 1))
    for graph in (as_graph_data(matrix, weighted=True), as_graph_data(turned)):
        found = zip(map(tuple, graph.edges.tolist()), graph.edge_weight.tolist(), strict=True)
        assert dict(found) == {tuple(pair): weight + 2.0 for weight, pair in enumerate(PAIRS.tolist())}
    with pytest.warns(GraphWarning, match="left out: the values"):
        assert as_graph_data(matrix).edge_weight is None


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32, np.uint64, np.float64, np.int16])
def test_ids_of_any_type(dtype):
    graph = GraphData.from_arrays(PAIRS.astype(dtype), directed=False)
    assert graph.edges.tolist() == PAIRS.tolist() and graph.edge_list("both").num_arcs == 10
    assert GraphData.from_arrays(PAIRS.astype(dtype)).counts()["num_nodes"] == 5


@pytest.mark.parametrize(
    ("form", "name", "values"),
    [
        ("csr", "indptr", [0, -5, 3]),
        ("csr", "indptr", [0, 1000, 3]),
        ("csr", "indptr", [0, 1000, 0]),
        ("csr", "indptr", [0, 2**31 - 1, -2]),
        ("csc", "indices", [0, 1, 2]),
        ("csr", "indices", [0, -1, 1]),
        ("coo", "row", [0, 0, 9]),
    ],
)
def test_arrays_of_a_matrix_that_point_outside_it_are_refused(form, name, values):
    matrix = scipy.sparse.coo_matrix(np.array([[1, 1], [0, 1]])).asformat(form)
    getattr(matrix, name)[:] = values
    with pytest.raises(InputError, match=f"the arrays of this {form}_matrix do not belong together"):
        GraphData.from_scipy(matrix)
    with pytest.raises(InputError, match="do not belong together"):
        GraphData.from_arrays([[0, 1]], feats=matrix)


READERS = {
    "pyg": lambda index, **more: GraphData.from_pyg(pyg.Data(edge_index=index, **more)),
    "dict": lambda index, **more: load_graph({"edge_index": index, **more}, findings=Findings()),
    "arrays": lambda index, **more: GraphData.from_arrays(index.T, **more),
}


@pytest.mark.parametrize("columns", [("y",), ("train_mask",), ("y", "train_mask", "test_mask")])
@pytest.mark.parametrize("library", READERS)
def test_rows_of_edges_make_no_vertices(columns, library):
    """Labels and masks with a row per edge, without features: the advice is run."""
    index, read = torch.tensor([[0, 1, 2, 0, 1], [1, 2, 0, 2, 1]]), READERS[library]
    made = {name: torch.arange(5) % 2 if name == "y" else torch.arange(5) == len(name) % 3 for name in columns}
    with pytest.raises(InputError, match="5 rows, one per edge, and edges name 3 vertices: give labels of edges as"):
        read(index, **made)
    assert read(index, **made, num_nodes=5).num_nodes == 5
    graph = GraphData.from_arrays(index.T, train_edges=index.T[:3], train_edge_labels=torch.arange(3))
    assert graph.num_nodes == 3 and graph.train_edge_labels.tolist() == [0, 1, 2]
