"""Answers as files and tables: names, classes by their words, probabilities, embeddings; a full disk leaves nothing."""

import csv
import resource

import numpy as np
import pytest
import torch
from cut_graphs import random_graph

import distgnn as dg
from distgnn.datasets import GraphData
from distgnn.errors import InputError
from distgnn.partition import partition_graph

pyg = pytest.importorskip("torch_geometric.nn")
WORDS = ("cat, black", 'a "dog"', "mouse")
NAMES = np.array([f"v{place}, ünit" for place in range(60)])


@pytest.fixture
def source() -> GraphData:
    graph = random_graph(4)
    graph.labels, graph.class_names, graph.node_names = np.arange(60) % 3, WORDS, NAMES
    return graph.split_nodes() if graph.train is None else graph


def read(path):
    """Names of columns, and the columns as texts."""
    if path.suffix == ".parquet":
        table = pytest.importorskip("pyarrow.parquet").read_table(path)
        return table.column_names, [column.to_pylist() for column in table.columns]
    with open(path, newline="", encoding="utf-8") as stream:
        rows = list(csv.reader(stream, delimiter="\t" if path.suffix == ".tsv" else ","))
    return rows[0], [list(column) for column in zip(*rows[1:], strict=True)]


def test_a_run_says_names_words_and_probabilities(run, ran, source, tmp_path, monkeypatch):
    monkeypatch.setenv("DISTGNN_CACHE", str(tmp_path / "cache"))
    result = dg.fit(source, "sage", ranks=1, hidden_feats=8, epochs=3, out=tmp_path / "out", quiet=True)
    words = ["predict", tmp_path / "out" / "run", tmp_path / "out" / "parts", "--quiet", "--out"]
    shares = torch.softmax(result.predict().double(), 1)
    likely = [WORDS[one] for one in result.predict().argmax(1)]
    for ending in (".csv", ".tsv", ".parquet"):
        ran(*words, tmp_path / f"z{ending}")
        names, columns = read(tmp_path / f"z{ending}")
        assert names == ["name", "class", "probability"] and columns[:2] == [list(NAMES), likely]
        found = np.array(columns[2], np.float32)
        np.testing.assert_array_equal(found, shares.amax(1).float().numpy())
    code, _, err = run(*words, tmp_path / "z.csv")
    assert code == 2 and "z.csv exists" in err and err.count("\n") == 1
    ran(*words, tmp_path / "h.tsv", "--embeddings")
    names, columns = read(tmp_path / "h.tsv")
    assert names == ["name", *(f"embedding_{place}" for place in range(8))]
    hidden = result.embeddings()
    np.testing.assert_array_equal(np.array(columns[1:], np.float32).T, hidden.numpy())
    assert torch.equal(hidden, result.embeddings(source))
    torch.testing.assert_close(hidden, dg.predict(result.model, source, ranks=1, quiet=True, embeddings=True))
    code, _, err = run(*words, tmp_path / "x.csv", "--embeddings", "--classes")
    assert code == 2 and "embeddings are of none" in err
    assert not list(tmp_path.glob("*.partial")) and not list(tmp_path.glob(".distgnn*"))


class Wrapper(torch.nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x, edge_index):
        return self.inner(x, edge_index)


def test_an_own_model_says_what_it_is_asked_for(source, tmp_path):
    torch.manual_seed(0)
    model = Wrapper(pyg.models.GraphSAGE(8, 8, 3, 3))
    options = {"ranks": 1, "quiet": True}
    rows, path = dg.predict(model, source, **options), tmp_path / "z.csv"
    dg.predict(model, source, out=path, **options)
    names, columns = read(path)
    assert names == ["name", "output_0", "output_1", "output_2"]
    np.testing.assert_array_equal(np.array(columns[1:], np.float32).T, rows.numpy())
    dg.predict(model, source, out=path, classes=True, overwrite=True, **options)
    assert read(path)[1][1] == [WORDS[one] for one in rows.argmax(1)]
    source.labels, source.class_names, source.node_names = np.zeros((60, 3), np.int8), (), None
    dg.predict(model, source, out=path, classes=True, overwrite=True, **options)
    names, columns = read(path)
    assert names == ["id", "probability_0", "probability_1", "probability_2"] and columns[0][:2] == ["0", "1"]
    np.testing.assert_allclose(np.array(columns[1:], float).T, torch.sigmoid(rows), rtol=1e-6)
    source.class_names = WORDS
    with pytest.raises(InputError, match="rows of width 4 are no scores of the graph's 3 classes"):
        dg.predict(torch.nn.Linear(8, 4), source, out=path, classes=True, overwrite=True, **options)
    inner = dg.predict(model, source, layers="inner.convs.1", **options)["inner.convs.1"]
    torch.testing.assert_close(dg.predict(model, source, embeddings=True, **options), inner.relu())


def sage():
    torch.manual_seed(0)
    return pyg.models.GraphSAGE(8, 8, 2, 4)


def test_files_and_layers(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    source, model = random_graph(4), sage()
    wanted = dg.predict(model, source, ranks=1, quiet=True, layers="convs.0")
    assert {name: one.shape[1] for name, one in wanted.items()} == {"output": 4, "convs.0": 8}
    for ending in (".npy", ".parquet", ""):
        paths = dg.predict(model, source, ranks=1, quiet=True, layers=["convs.0"], out=tmp_path / f"z{ending}")
        for name, path in paths.items():
            if ending == ".parquet":
                table = parquet.read_table(path)
                assert table["id"].to_pylist() == list(range(60))
                rows = np.stack(table["output"].to_pylist()).astype(np.float32)
            else:
                rows = np.load(path / "rows-00000.npy" if ending == "" else path)
            np.testing.assert_array_equal(rows, wanted[name].numpy())
    with pytest.raises(InputError, match=r"z.output.npy exists"):
        dg.predict(model, source, ranks=1, quiet=True, layers=["convs.0"], out=tmp_path / "z.npy")
    dg.predict(model, source, ranks=1, quiet=True, layers=["convs.0"], out=tmp_path / "z", overwrite=True)
    assert not list(tmp_path.glob("*.partial")) and not list(tmp_path.glob(".distgnn*"))


@pytest.mark.parametrize(("ending", "most"), [(".npy", 600), ("", 600), (".csv", 2000), (".parquet", 1500)])
def test_a_disk_that_is_full_at_half(tmp_path, ending, most):
    """No file may be longer: the rows themselves, or the table made of them."""
    pytest.importorskip("pyarrow")
    partition_graph(random_graph(4), 1, tmp_path / "parts", say=lambda line: None)
    before = set(tmp_path.iterdir())
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, limits[1]))
    try:
        with pytest.raises(InputError, match="cannot write predictions to") as caught:
            dg.predict(sage(), tmp_path / "parts", quiet=True, out=tmp_path / f"z{ending}")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert "\n" not in str(caught.value) and set(tmp_path.iterdir()) == before
