"""Graphs of two tables, in text, Parquet and frames: features, classes by name, splits; faults by their rows."""

import gzip
import io

import numpy as np
import pytest

import distgnn as dg
from distgnn.errors import DistGNNError

pandas = pytest.importorskip("pandas")

EDGES = 'source,target,weight\nann,bob,1\nbob,007,2\n\n007,"o\'neil, sean",4\n'
NODES = """name,age,member,city,kind,part
ann,31,True,Rome,cat,train
bob,28.5,False,,dog,Valid
007,44,true,Paris,,
"o'neil, sean",12,false,Rome,cat,test
lone,50,true,Bonn,dog,train
"""
ASKED = {"id": "name", "label": "kind", "split": "part"}
pytestmark = [pytest.mark.filterwarnings(f"ignore::distgnn.errors.{name}") for name in ("GraphWarning", "GraphNotice")]


def frames():
    texts = dict.fromkeys(("name", "source", "target"), str)
    return [pandas.read_csv(io.StringIO(text), dtype=texts) for text in (EDGES, NODES)]


def tables(folder, kind):
    """The two tables as files, or frames."""
    if kind == "frames":
        return frames()
    paths = [folder / f"{name}{kind}" for name in ("edges", "nodes")]
    for path, text, frame in zip(paths, (EDGES, NODES), frames(), strict=True):
        if kind == ".parquet":
            pytest.importorskip("pyarrow")
            frame.to_parquet(path)
        elif kind == ".tsv":
            frame.to_csv(path, sep="\t", index=False)
        elif kind == ".csv.gz":
            path.write_bytes(gzip.compress(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode()))
        else:
            path.write_text(text)
    return paths


@pytest.mark.parametrize("kind", [".csv", ".tsv", ".csv.gz", ".parquet", "frames"])
def test_the_same_graph_of_any_tables(tmp_path, kind):
    edges, nodes = tables(tmp_path, kind)
    graph = dg.load_graph({"edges": edges, "nodes": nodes} | ASKED)
    assert graph.node_names.tolist() == ["ann", "bob", "007", "o'neil, sean", "lone"]
    np.testing.assert_array_equal(graph.edges, [[0, 1], [1, 2], [2, 3]])
    np.testing.assert_array_equal(graph.edge_weight, [1, 2, 4])
    np.testing.assert_array_equal(graph.feats, [[31, 1], [28.5, 0], [44, 1], [12, 0], [50, 1]])
    assert (graph.labels.tolist(), graph.class_names) == ([0, 1, -1, 0, 1], ("cat", "dog"))
    assert [getattr(graph, name).tolist() for name in ("train", "valid", "test")] == [[0, 4], [1], [3]]
    assert any(one.severity == "left out" and one.field == "city" for one in graph.findings)


def test_numbers_as_names_and_usual_names_of_columns(tmp_path):
    (tmp_path / "e.csv").write_text("70,-5\n-5,70\n70,70\n")
    (tmp_path / "n.tsv").write_text("x\ty\tid\n1\t2\t70\n3\t\t-5\n")
    graph = dg.load_graph({"edges": tmp_path / "e.csv", "nodes": tmp_path / "n.tsv", "y": None})
    assert graph.node_names.tolist() == [70, -5] and graph.labels.tolist() == [2, -1]
    assert sorted(graph.edge_list().arcs()[0]) == [0, 0, 1]
    words = {"nodes": pandas.DataFrame({"id": ["70", "-5"], "x": [1, 2]})}
    found = dg.load_graph({"edges": np.array([[70, -5], [-5, -5]]), **words})
    assert found.edges.tolist() == [[0, 1], [1, 1]]
    values = dg.load_graph({"edges": [["70", "-5"]], **words, "label": "x"}, task="regression")
    assert values.node_values.tolist() == [1, 2] and values.feats is None


BAD = {
    "an unknown vertex": ("e", "bob,007", "bob,eve", "edges.csv: line 3: 'eve' is in no row of the nodes"),
    "doubled ids": ("n", "lone,", "ann,", "nodes.csv: line 6: column name: 'ann' is there twice"),
    "an empty id": ("n", "bob,28.5", ",28.5", "nodes.csv: line 3: column name: an empty id"),
    "a text among numbers": ("n", ",12,", ",twelve,", "nodes.csv: line 5: column age holds 'twelve' among numbers"),
    "no value": ("n", ",44,", ",,", "nodes.csv: line 4: column age has no value"),
    "too large": ("n", ",44,", ",1e99,", "nodes.csv: line 4: column age holds 1e[+]99"),
    "a split": ("n", ",test", ",tset", "nodes.csv: line 5: column part: 'tset' is no split"),
    "a cell more": ("n", ",44,", ",44,5,", "nodes.csv: line 4: expected 6 columns"),
    "an open quote": ("n", "lone", '"lone', "nodes.csv: line 6: unexpected end of data"),
    "no text": ("n", "Bonn", "B\udcf6nn", "nodes.csv: is no text in UTF-8 .byte 0xf6"),
    "only names": ("n", NODES[31:], "", "nodes.csv: has names of columns, and no rows"),
    "a column twice": ("n", "city", "age", "nodes.csv: two columns have one name"),
    "an unknown column": ("n", "kind", "sort", "nodes.csv has no column 'kind'.*: it has name, age"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_named_by_its_row(tmp_path, name):
    which, old, new, says = BAD[name]
    texts = {"e": EDGES, "n": NODES}
    assert old in texts[which]
    texts[which] = texts[which].replace(old, new, 1)
    for file, text in zip(("edges.csv", "nodes.csv"), texts.values(), strict=True):
        (tmp_path / file).write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(DistGNNError, match=says) as caught:
        dg.load_graph({"edges": tmp_path / "edges.csv", "nodes": tmp_path / "nodes.csv"} | ASKED)
    assert "\n" not in str(caught.value)


def test_bad_frames():
    edges, nodes = frames()
    for change, says in (
        (nodes.assign(name=["a", "b", None, "c", "d"]), "nodes: row 2: column name: an empty id"),
        (nodes.assign(age=[1, np.nan, 3, 4, 5]), "nodes: row 1: column age has no value"),
        (nodes.assign(age=[1, "x", 3, 4, 5]), "nodes: column age: row 1 holds 'x'"),
        (nodes.drop(columns="name"), "nodes has no column 'name'"),
        (nodes[:3], 'edges: row 2: "o\'neil, sean" is in no row'),
        (3, "nodes is a int"),
    ):
        with pytest.raises(DistGNNError, match=says):
            dg.load_graph({"edges": edges, "nodes": change} | ASKED)


@pytest.mark.parametrize("kind", [".csv.gz", ".parquet"])
def test_tables_that_do_not_fit_are_refused(tmp_path, monkeypatch, kind):
    edges, nodes = tables(tmp_path, kind)
    monkeypatch.setattr("distgnn.datasets.array_files.available_bytes", lambda: 200)
    with pytest.raises(DistGNNError, match=rf"nodes{kind}: unpacks to more than the 2e-07 GB"):
        dg.load_graph({"edges": edges, "nodes": nodes} | ASKED)


def test_in_a_shell_and_in_fit(run, ran, tmp_path, monkeypatch):
    monkeypatch.setenv("DISTGNN_CACHE", str(tmp_path / "cache"))
    edges, nodes = tables(tmp_path, ".csv")
    words = ["partition", edges, "--nodes", nodes, "--parts", 1, "--out", tmp_path / "parts", "--quiet"]
    ran(*words, "--id", "name", "--label", "kind", "--split", "part", "--merge", "max")
    code, _, err = run(*words, "--labels", nodes)
    assert code == 2 and "leave --feats and --labels out" in err
    result = dg.fit({"edges": frames()[0], "nodes": nodes} | ASKED, ranks=1, epochs=1, quiet=True, hidden_feats=4)
    assert result.node_names[3] == "o'neil, sean" and result.predict().shape == (5, 2)
