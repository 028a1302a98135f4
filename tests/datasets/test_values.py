"""Labels that are numbers: floats are values, in their shape, and whole numbers classes; a task asked for wins."""

import numpy as np
import pytest

import distgnn as dg
from distgnn.datasets import load_graph
from distgnn.datasets.findings.findings import Findings
from distgnn.errors import InputError
from distgnn.system.other_libraries import import_dgl

torch, pyg = pytest.importorskip("torch"), pytest.importorskip("torch_geometric")
EDGES = np.array([[0, 1], [1, 2], [2, 0]])
FLOATS = ["float64", "float32", "float16", "bfloat16"]
SHAPES = {"[N]": [18.0, 25.0, 2.0], "[N, 1]": [[18.0], [25.0], [2.0]], "[N, T]": [[0.5, 3.0], [2.0, 1.0], [7.0, 0.0]]}


def tensor(values, dtype):
    return torch.tensor(values, dtype=getattr(torch, dtype))


def of_dgl(values, _):
    graph = import_dgl().graph((EDGES[:, 0], EDGES[:, 1]))
    graph.ndata["label"] = values
    return graph


def of_pyg(values, _):
    return pyg.data.Data(edge_index=tensor(EDGES.T.tolist(), "int64"), y=values, num_nodes=3)


def of_folder(values, folder):
    (folder / "g").mkdir()
    (folder / "g" / "graph.json").write_text('{"num_nodes": 3, "directed": true}')
    np.save(folder / "g" / "edges.npy", EDGES)
    np.save(folder / "g" / "labels.npy", values.float().numpy())
    return str(folder / "g")


def of_npz(values, folder):
    np.savez(folder / "g.npz", edge_index=EDGES.T, y=values.float().numpy())
    return str(folder / "g.npz")


def of_csv(values, folder):
    rows = values.float().numpy().reshape(3, -1)
    (folder / "y.csv").write_text("".join(",".join(map(str, row)) + "\n" for row in rows))
    return {"edge_index": EDGES.T, "y": str(folder / "y.csv")}


READERS = {
    "dgl": of_dgl, "pyg": of_pyg, "folder": of_folder, "npz": of_npz, "csv": of_csv,
    "dict": lambda values, _: {"edge_index": EDGES.T, "y": values},
    "tuple": lambda values, _: (EDGES.T, np.eye(3), values),
}  # fmt: skip


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("shape", SHAPES)
def test_floats_are_values_in_their_shape(reader, shape, tmp_path):
    for dtype in FLOATS if reader in ("dgl", "pyg") else FLOATS[1:2]:
        graph = load_graph(READERS[reader](tensor(SHAPES[shape], dtype), tmp_path), findings=Findings())
        expected = np.array(SHAPES[shape])
        expected = expected[:, 0] if (reader, shape) == ("csv", "[N, 1]") else expected  # a file does not say
        assert graph.labels is None and graph.node_values.tolist() == expected.tolist(), dtype
        again = load_graph(str(graph.save(tmp_path / f"again-{dtype}")))
        assert again.node_values.tolist() == graph.to_pyg().y.tolist() == expected.tolist()


@pytest.mark.parametrize("library", ["dgl", "pyg", "dict"])
def test_the_task_asked_for_decides(library):
    def read(values, dtype, task=None):
        return load_graph(READERS[library](tensor(values, dtype), None), findings=Findings(), task=task)

    for dtype in ("int64", "int32", "uint8", "bool"):
        flags = [1, 0, 1]
        assert read(flags, dtype).labels.tolist() == flags and read(flags, dtype).node_values is None
        assert read(flags, dtype, "regression").node_values.tolist() == flags
    assert read([-5, 900000, 7], "int64", "regression").node_values.tolist() == [-5, 900000, 7]  # neither gaps nor none
    assert read([1.0, float("nan"), 2.0], "float32", "node").labels.tolist() == [1, -1, 2]
    assert read([[0.0, 1.0], [1.0, 1.0], [0.0, 0.0]], "float32").multilabel  # as PPI's, for BCEWithLogitsLoss
    assert read([[0.0, 1.0], [1.0, 1.0], [0.0, 0.0]], "float32", "regression").num_values == 2


@pytest.mark.parametrize("none", [None, float("nan")])
def test_whole_numbers_with_gaps_stay_classes(none):
    pandas = pytest.importorskip("pandas")
    for column in ([1, none, 2], np.array([1, none, 2], object), pandas.Series([1, None, 2], dtype="Int64")):
        assert dg.GraphData.from_arrays(EDGES, labels=column).labels.tolist() == [1, -1, 2]


@pytest.mark.parametrize("columns", [("y",), ("train_mask",), ("y", "train_mask", "test_mask")])
@pytest.mark.parametrize("library", ["pyg", "dict", "arrays"])
def test_rows_of_edges_make_no_vertices(columns, library):
    """Labels and masks with a row per edge, without features: the advice is run."""
    index, made = tensor([[0, 1, 2, 0, 1], [1, 2, 0, 2, 1]], "int64"), {}
    for number, name in enumerate(columns):
        made[name] = torch.arange(5) == number if name.endswith("mask") else torch.arange(5) % 2

    def read(given, **more):
        if library == "arrays":
            return dg.GraphData.from_arrays(index.T, **given, **more)
        data = {"edge_index": index, **given}
        if library == "dict":
            return load_graph(data | more, findings=Findings())
        return dg.GraphData.from_pyg(pyg.data.Data(**data, **more))

    with pytest.raises(InputError, match="5 rows, one per edge, and edges name 3 vertices: give labels of edges as"):
        read(made)
    assert read(made, num_nodes=5).num_nodes == 5
    of_edges = {"train_edges": index.T[:3], "train_edge_labels": torch.arange(3)}
    graph = dg.GraphData.from_arrays(index.T, **of_edges)
    assert graph.num_nodes == 3 and graph.train_edge_labels.tolist() == [0, 1, 2]
