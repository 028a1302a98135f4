"""A file of columns by the end of its name."""

import numpy as np
import pytest
import scipy.sparse as sp

import distgnn as dg
from distgnn.datasets import load_graph
from distgnn.errors import InputError


def test_files_of_columns_stand_in_a_dict_and_on_the_command_line(tmp_path, monkeypatch, run, ran):
    """The same graph, whatever kind of file has its rows."""
    monkeypatch.chdir(tmp_path)
    feats, labels = np.arange(8, dtype=np.float32).reshape(4, 2), np.array([0, 1, 1, 0])
    (tmp_path / "e.txt").write_text("# Undirected graph: toy.txt\n0\t1\n0\t3\n1\t2\n1\t3\n2\t3\n")
    np.save("x.npy", feats)
    np.savetxt("x.csv", feats, delimiter=",")
    (tmp_path / "index.csv").write_text(",a,b\n" + "".join(f"{row},{a},{b}\n" for row, (a, b) in enumerate(feats)))
    sp.save_npz("x.npz", sp.csr_matrix(feats))
    np.savez("two.npz", x=feats, z=feats)
    np.savetxt("y.txt", labels, "%d")
    (tmp_path / "y.csv").write_text("node,label\n" + "".join(f"{row},{label}\n" for row, label in enumerate(labels)))
    (tmp_path / "order.csv").write_text("id,label\n1,0\n0,1\n")
    assert (load_graph({"edge_index": "e.txt", "x": "x.npy", "y": "y.csv"}).labels == labels).all()
    for file in ("x.npy", "x.csv", "index.csv", "x.npz", "two.npz"):
        graph = load_graph({"edge_index": "e.txt", "x": file, "y": "y.txt"})
        found = graph.feats.toarray() if hasattr(graph.feats, "toarray") else graph.feats
        assert graph.num_edges == 5 and not graph.directed and (found == feats).all() and (graph.labels == labels).all()
    (tmp_path / "both.txt").write_text("0 1\n0 2\n1 0\n1 2\n2 0\n2 1\n3 3\n")  # in the order of the file
    for source in ({"edge_index": "both.txt", "x": "x.npy"}, "both.txt"):
        assert load_graph(source).arc_order == "sorted"
    (tmp_path / "e.doc").write_text("1")
    no_column = {"order.csv": "column id is not 0, 1, 2", "no.npy": "no such file", "y": "no such file"}
    for file, message in (no_column | {"e.doc": "of no kind that is read"}).items():
        with pytest.raises(InputError, match=message):
            load_graph({"edge_index": "e.txt", "x": file})
    words = ["e.txt", "--feats", "x.csv", "--labels", "y.txt", "--parts", "1", "--out", "parts"]
    ran("partition", *words)
    part = dg.partition.read_manifest("parts")
    assert part["name"] == "e" and part["graph"]["num_classes"] == 2 and part["graph"]["num_feats"] == 2
    code, _, err = run("partition", *words[:-1], "other", "--renumber")
    assert code == 2 and "in the order of ids from 0" in err


def test_a_file_of_another_kind_is_refused_with_the_kinds(refused):
    refused("table.feather", "PAR1", "of a kind that is read: .csv")
