"""Labels that are numbers: floats are values, in their shape, and whole numbers classes; a task asked for wins."""

import numpy as np
import pytest

import distgnn as dg
from distgnn.datasets import load_graph
from distgnn.datasets.findings.findings import Findings
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
    np.savetxt(folder / "y.csv", values.float().numpy().reshape(3, -1), delimiter=",")
    return {"edge_index": EDGES.T, "y": str(folder / "y.csv")}


READERS = {
    "dgl": of_dgl, "folder": of_folder, "npz": of_npz, "csv": of_csv,
    "pyg": lambda values, _: pyg.data.Data(edge_index=torch.from_numpy(EDGES.T.copy()), y=values, num_nodes=3),
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

    several = [[0.0, 1.0], [1.0, 1.0], [0.0, 0.0]]
    for dtype in ("int64", "int32", "uint8", "bool"):
        flags = [1, 0, 1]
        assert read(flags, dtype).labels.tolist() == flags and read(flags, dtype).node_values is None
        assert read(flags, dtype, "regression").node_values.tolist() == flags
    assert read([-5, 900000, 7], "int64", "regression").node_values.tolist() == [-5, 900000, 7]  # neither gaps nor none
    assert read([1.0, float("nan"), 2.0], "float32", "node").labels.tolist() == [1, -1, 2]
    assert read(several, "float32").multilabel  # as PPI's, for BCEWithLogitsLoss
    assert read(several, "float32", "regression").num_values == 2


@pytest.mark.parametrize("none", [None, float("nan")])
def test_whole_numbers_with_gaps_stay_classes(none):
    pandas = pytest.importorskip("pandas")
    for column in ([1, none, 2], np.array([1, none, 2], object), pandas.Series([1, None, 2], dtype="Int64")):
        assert dg.GraphData.from_arrays(EDGES, labels=column).labels.tolist() == [1, -1, 2]


@pytest.mark.parametrize(
    ("labels", "classes", "names"),
    [
        (["dog", "cat", None, "cat", ""], [1, 0, -1, 0, -1], ("cat", "dog")),
        ([10, 20, 10**9, 20, -1], [0, 1, 2, 1, -1], ("10", "20", "1000000000")),
        ([0, 1, 3, 0, 1], [0, 1, 3, 0, 1], ()),  # a class that happens to be empty
    ],
)
def test_classes_of_texts_and_of_numbers_with_gaps_keep_their_names(labels, classes, names, tmp_path):
    edges = [[0, 1], [1, 2], [2, 0], [2, 3], [3, 4]]
    graph = dg.GraphData.from_arrays(edges, feats=np.eye(5), labels=labels, train=[0, 1], findings=Findings())
    assert (graph.labels.tolist(), graph.class_names) == (classes, names)
    assert bool(graph.findings.lines()) == bool(names)
    again = dg.load_graph(str(graph.save(tmp_path / "graph")))
    assert (again.class_names, again.num_classes) == (names, len(names) or 4)
    manifest = dg.partition_graph(again, 2, tmp_path / "parts", "libra", direction="both")
    assert tuple(manifest["graph"].get("class_names", ())) == names
