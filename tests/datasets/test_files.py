"""One downloaded file as a graph: what each kind is understood as, and the line of what is wrong."""

import gzip
import sys

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

import distgnn as dg
from distgnn.cli import main
from distgnn.datasets import load_graph
from distgnn.datasets.findings.findings import Findings
from distgnn.errors import GraphFormatError, InputError

PAIRS = np.array([[0, 1], [1, 2], [2, 3], [3, 0], [1, 3]])
UP = np.array([[0, 1], [0, 3], [1, 2], [1, 3], [2, 3]])  # PAIRS as undirected edges
SNAP = "# Undirected graph: toy.txt\n# Nodes: 4 Edges: 5\n# FromNodeId\tToNodeId\n"
METIS = "% by hand\n4 5\n2 4\n1 3 4\n2 4\n1 2 3\n"
MARKET = "%%MatrixMarket matrix coordinate real general\n% c\n3 3 2\n1 2 0.5\n"


def rows(pairs, sep=" ", first=0):
    return "".join(f"{u + first}{sep}{v + first}\n" for u, v in pairs)


def read(tmp_path, name, content, **options):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    found = Findings()
    return load_graph(str(path), findings=found, **options), found.lines()


TEXTS = {
    "snap.txt": (SNAP + rows(PAIRS, "\t"), PAIRS, "undirected, ids from 0"),
    "snap.txt.gz": (gzip.compress((SNAP + rows(PAIRS, "\t")).encode()), PAIRS, "undirected"),
    "out.packed.gz": (gzip.compress(("% asym\n" + rows(PAIRS, " ", 1)).encode()), PAIRS, "directed, ids from 1"),
    "out.konect": ("% sym unweighted\n% 5 4 4\n" + rows(PAIRS, "\t", 1), PAIRS, "undirected, ids from 1"),
    "header.csv": ("id_1,id_2\n" + rows(PAIRS, ","), PAIRS, "directed, ids from 0"),
    "quoted.csv": ('"src","dst"\n' + "".join(f'"{u}","{v}"\n' for u, v in PAIRS), PAIRS, "directed, ids from 0"),
    "index.csv": (",source,target\n" + "".join(f"7,{u},{v}\n" for u, v in PAIRS), PAIRS, "directed, ids from 0"),
    "rows.tsv": ('"to"\t"from"\n' + "".join(f"7\t{v}\t{u}\n" for u, v in PAIRS), PAIRS, "directed, ids from 0"),
    "both.tsv": (rows([*PAIRS, *PAIRS[:, ::-1]], "\t"), PAIRS, "undirected, stored both ways"),
    "metis.graph": (METIS, UP, "undirected, stored both ways, ids from 1"),
}


@pytest.mark.parametrize(("name", "case"), TEXTS.items(), ids=TEXTS)
def test_texts_are_read_as_they_are_downloaded(name, case, tmp_path):
    content, edges, says = case
    graph, lines = read(tmp_path, name, content)
    assert sorted(map(tuple, graph.edges.tolist())) == sorted(map(tuple, edges.tolist()))
    assert graph.directed == says.startswith("directed") and graph.num_nodes == 4
    assert (
        says in lines[0] and "4 vertices, 5 edges" in lines[0] and "0 duplicates, 0 self-loops, 0 isolated" in lines[0]
    )


COLUMNS = {
    "weight.csv": ("source,target,weight,since\n0,1,0.5,7\n1,2,2,8\n", [0.5, 2], "left out: since"),
    "gephi.csv": ("Source;Target;Id;Weight\n0;1;0;0.5\n1;2;1;2\n", [0.5, 2], "left out: id"),
    "third.txt": ("0 1 0.5\n1 2 2\n", [0.5, 2], "edge_weight ← column 3"),
    "time.txt": ("0 1 1217567877\n1 2 1217567999\n", None, "column 3 (times, 1217567877 to 1217567999)"),
    "out.konect": ("% asym weighted\n1 2\t3 1217567877\n2 3\t4 1217567878\n", [3, 4], "left out: column 4 (times"),
    "text.csv": ("source,target,kind\n0,1,likes\n1,2,hates\n", None, "left out: kind"),
}


@pytest.mark.parametrize(("name", "case"), COLUMNS.items(), ids=COLUMNS)
def test_columns_beside_the_ends_are_weights_or_named(name, case, tmp_path):
    content, weight, says = case
    graph, lines = read(tmp_path, name, content)
    assert graph.edges.tolist() == [[0, 1], [1, 2]]
    assert (None if graph.edge_weight is None else graph.edge_weight.tolist()) == weight
    assert any(says in line for line in lines) and ("no weights" in lines[0]) == (weight is None)


def test_matrices_of_scipy(tmp_path):
    matrix = sp.coo_matrix((np.ones(5), PAIRS.T), (4, 4))
    both = matrix + matrix.T
    scipy.io.mmwrite(tmp_path / "general.mtx", matrix)
    scipy.io.mmwrite(tmp_path / "pattern.mtx", both, field="pattern", symmetry="symmetric")
    (tmp_path / "pattern.mtx.gz").write_bytes(gzip.compress((tmp_path / "pattern.mtx").read_bytes()))
    scipy.io.mmwrite(tmp_path / "real.mtx", both * 0.5, symmetry="symmetric")
    sp.save_npz(tmp_path / "csr.npz", both.tocsr())
    csr = both.tocsr()
    parts = {"adj_data": csr.data, "adj_indices": csr.indices, "adj_indptr": csr.indptr, "adj_shape": csr.shape}
    np.savez(tmp_path / "benchmark.npz", **parts, labels=np.arange(4) % 2, idx_to_class=np.arange(2))
    np.savez(tmp_path / "named.npz", edges=PAIRS, node_features=np.ones((4, 2)), node_labels=[0, 1, 0, 1])
    graphs = {path.name: load_graph(str(path), findings=Findings()) for path in tmp_path.iterdir()}
    assert {name: (graph.num_edges, graph.directed) for name, graph in graphs.items()} == {
        name: (5, name in ("general.mtx", "named.npz")) for name in graphs
    }
    assert graphs["real.mtx"].edge_weight.tolist() == [0.5] * 5 and graphs["pattern.mtx"].edge_weight is None
    assert graphs["benchmark.npz"].labels.tolist() == [0, 1, 0, 1] and graphs["named.npz"].num_feats == 2


def test_graphs_of_pyg_are_read_without_running_them(tmp_path):
    torch, pyg = pytest.importorskip("torch"), pytest.importorskip("torch_geometric.data")
    data = pyg.Data(x=torch.ones(4, 2), edge_index=torch.from_numpy(PAIRS.T.copy()), y=torch.arange(4))
    torch.save(data, tmp_path / "data.pt")
    torch.save((data.to_dict(), None, pyg.Data), tmp_path / "processed.pt")
    for name in ("data.pt", "processed.pt"):
        found = Findings()
        graph = load_graph(str(tmp_path / name), findings=found)
        assert (graph.edges.tolist(), graph.num_feats, graph.num_classes) == (PAIRS.tolist(), 2, 4)
        assert "4 vertices, 5 edges (5 arcs), directed" in found.lines()[0]
    torch.save((data.edge_index, data.x), tmp_path / "tuple.pt")
    assert load_graph(str(tmp_path / "tuple.pt"), findings=Findings()).num_feats == 2
    for graphs in ([data, data], (data, data)):
        torch.save(graphs, tmp_path / "two.pt")
        for source in (graphs, str(tmp_path / "two.pt")):
            with pytest.raises((InputError, GraphFormatError), match="has 2 graphs: give one of them"):
                load_graph(source)
    torch.save({"edge_index": data.edge_index, "run": Evil(tmp_path / "ran")}, tmp_path / "evil.pt")
    with pytest.raises(GraphFormatError, match=r"evil\.pt: is not read, as that could run code"):
        load_graph(str(tmp_path / "evil.pt"))
    assert not (tmp_path / "ran").exists()


class Evil:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


def test_graphs_of_dgl(tmp_path):
    torch = pytest.importorskip("torch")
    dg.import_dgl()
    import dgl

    graph = dgl.graph((PAIRS[:, 0], PAIRS[:, 1]))
    graph.ndata["feat"], graph.edata["w"] = torch.ones(4, 2), torch.arange(5.0)
    dgl.save_graphs(str(tmp_path / "one.bin"), [graph])
    dgl.save_graphs(str(tmp_path / "two.bin"), [graph, graph])
    read = load_graph(str(tmp_path / "one.bin"), findings=Findings())
    assert (read.edges.tolist(), read.num_feats, read.edge_weight.tolist()) == (PAIRS.tolist(), 2, [0, 1, 2, 3, 4])
    (tmp_path / "cut.bin").write_bytes((tmp_path / "one.bin").read_bytes()[:200])
    for name, says in (("two.bin", "holds 2 graphs"), ("cut.bin", "damaged or not the expected file .magicNum")):
        with pytest.raises((InputError, GraphFormatError), match=says):
            load_graph(str(tmp_path / name))


def test_a_folder_of_graphsaint(tmp_path):
    matrix = sp.coo_matrix((np.ones(5), PAIRS.T), (4, 4))
    sp.save_npz(tmp_path / "adj_full.npz", (matrix + matrix.T).tocsr())
    np.save(tmp_path / "feats.npy", np.ones((4, 3)))
    (tmp_path / "class_map.json").write_text('{"0": 1, "1": 0, "2": 1, "3": 0}')
    (tmp_path / "role.json").write_text('{"tr": [0, 1], "va": [2], "te": [3]}')
    graph = load_graph(str(tmp_path), findings=Findings())
    assert (graph.num_edges, graph.directed, graph.labels.tolist()) == (5, False, [1, 0, 1, 0])
    assert (graph.train.tolist(), graph.test.tolist(), graph.num_feats) == ([0, 1], [3], 3)
    for name, text in (("role.json", '{"tr": [1%030d], "va": [], "te": []}'), ("class_map.json", '{"1%030d": 1}')):
        whole = (tmp_path / name).read_text()
        (tmp_path / name).write_text(text % 0)
        with pytest.raises(GraphFormatError, match=name):
            load_graph(str(tmp_path))
        (tmp_path / name).write_text(whole)


@pytest.mark.parametrize(("ids", "kind"), [(np.array(["ann", "böb", "eve", "zoë"]), "U"), (10**17 + PAIRS[:4, 0], "i")])
def test_names_are_kept_to_the_partition_and_back(ids, kind, tmp_path):
    text = "source,target,weight\n" + "".join(f"{ids[u]},{ids[v]},2\n" for u, v in PAIRS)
    graph, lines = read(tmp_path, "named.csv", text, renumber=True)
    assert graph.node_names.astype(ids.dtype).tolist() == sorted(ids.tolist()) and "ids renumbered, from" in lines[0]
    assert graph.edges.tolist() == PAIRS.tolist() and graph.edge_weight.tolist() == [2] * 5
    dg.partition_graph(str(tmp_path / "named.csv"), 2, tmp_path / "parts", "random", renumber=True, say=print)
    from distgnn.partition.repartition import load_whole

    assert load_whole(tmp_path / "parts").graph.node_names.tolist() == graph.node_names.tolist()
    with pytest.raises(InputError, match="renumber is for edge lists"):
        load_graph("communities:nodes=60", renumber=True)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("café,b\ncafè,b\n".encode("latin-1"), "byte 0xe9"),
        ("café,b\n".encode("utf-16"), "byte 0xff"),
        (b"ann,bob\nbob,ann\0\n", "a NUL byte"),
    ],
)
def test_names_that_are_no_text_are_refused_before_two_become_one(line, says, tmp_path):
    with pytest.raises(GraphFormatError, match=rf"names\.csv: line [12]: is no text in UTF-8 \({says}"):
        read(tmp_path, "names.csv", line, renumber=True)


NO_EDGE_IS_LOST = {  # text, ids of an edge each, weights
    "quoted.csv": ('"0","1"\n"1","2"\n', [[0, 1], [1, 2]], None),
    "quoted weights.csv": ('"0","1","0.5"\n"1","2","2"\n', [[0, 1], [1, 2]], [0.5, 2]),
    "one.csv": ('"0","1"\n', [[0, 1]], None),
    "unknown names.csv": ('"a","b"\n"0","1"\n"1","2"\n', [[0, 1], [1, 2]], None),
    "trailing.csv": ("0,1,\n1,2,\n", [[0, 1], [1, 2]], None),
    "trailing header.csv": ("source,target,\n0,1,\n1,2,\n", [[0, 1], [1, 2]], None),
    "trailing rows.csv": ("source,target\n0,1,\n1,2,\n", [[0, 1], [1, 2]], None),
}


@pytest.mark.parametrize("renumber", [False, True])
@pytest.mark.parametrize(("name", "case"), NO_EDGE_IS_LOST.items(), ids=NO_EDGE_IS_LOST)
def test_no_edge_is_lost_to_a_header_and_no_column_to_a_separator(name, case, renumber, tmp_path):
    content, edges, weight = case
    graph, lines = read(tmp_path, name, content, renumber=renumber)
    assert graph.edges.tolist() == edges and not any("left out" in line for line in lines)
    assert (None if graph.edge_weight is None else graph.edge_weight.tolist()) == weight


@pytest.mark.parametrize("written", ["007 7", "7.0 7", "+7 7", "-0 0", "12345678901234567890 7"])
@pytest.mark.parametrize("weight", ["", " 0.5", " x"])
def test_renumbered_texts_are_one_vertex_only_where_they_are_one_text(written, weight, tmp_path):
    graph, _ = read(tmp_path, "names.txt", f"3 4{weight}\n{written}{weight}\n", renumber=True)
    assert graph.num_nodes == 4 and set(written.split()) < set(graph.node_names.tolist())
    plain, _ = read(tmp_path, "plain.txt", f"10 20{weight}\n-3 0{weight}\n", renumber=True)
    assert plain.node_names.tolist() == [-3, 0, 10, 20]


WRONG = {
    "half.csv": ("x,1\n0,1\n", "line 1: .*--renumber|line 1: expected"),
    "excel.csv": ("sep=;\n0;1\n", "line 1: sep= is Excel's word for the separator: delete this line"),
    "decimal.csv": ("0;1;0,5\n", "line 1: 0,5 has a decimal comma: write 0.5"),
    "encoded.csv": ("source,target\n0,1\n".encode("utf-16"), "UTF-16.: convert it, as iconv -f UTF-16 -t UTF-8 does"),
    "ragged.txt": ("# a\n0 1\n1 2 3\n", "line 3: expected 2 whole numbers"),
    "ragged.csv": ("a,b,w\n0,1,2\n1,2\n", "line 3: expected 3 numbers"),
    "float.csv": ("source,target,w\n0,1,2\n1,2.5,1\n", r"line 3: 2\.5 is no whole number"),
    "negative.txt": ("0 1\n\n1 -2\n", "line 3: vertex -2: ids are not negative"),
    "names.csv": ("source,target\nann,bob\n", "line 2: 'ann' is no whole number.*--renumber"),
    "mixed.csv": ("source,target\n1,0\n2,bob\n", "line 3: expected 2 whole numbers"),
    "target.csv": ("source,target,w\n1,bob,1\n2,0,1\n", "line 2: 'bob' is no whole number"),
    "out.beyond": ("% asym\n% 2 3 3\n1 2\n1 4\n", "line 4: vertex 4: the second line says 3 vertices"),
    "out.zero": ("% asym\n0 2\n", "line 2: vertex 0: ids run from 1"),
    "out.bip": ("% bip unweighted\n1 1\n", "line 1: a bipartite graph"),
    "header.csv": ("src,dst\n", "has no edges, only names of columns"),
    "bars.csv": ("src|dst\n0|1\n", r"found 'src\|dst': columns stand apart by"),
    "empty.txt": ("# nothing\n", "has no edges"),
    "header.mtx": ("%%MatrixMarkt matrix coordinate real general\n1 1 0\n", r"header\.mtx: line 1: "),
    "packed.mtx.gz": (gzip.compress((MARKET + "1 2 1.5\n").encode())[:-9], "damaged"),
    "large.mtx": (MARKET.replace("3 3 2", "3 3 900000000000"), "unpacks to more than"),
    "cut.mtx": (MARKET.replace("3 3 2", "3 3 4") + "2 3 1.5 ", "damaged"),  # scipy's reader alone ends the process
    "beyond.mtx": (MARKET + "1 4 1.0\n", "line 5: "),
    "array.mtx": ("%%MatrixMarket matrix array real general\n1 1\n1.0\n", "line 1: of kind array real general"),
    "wide.mtx": ("%%MatrixMarket matrix coordinate real general\n3 4 1\n1 2 1\n", "expected a square matrix"),
    "beyond.graph": ("2 1\n2\n3\n", "line 3: names vertex 3: ids run from 1 to 2"),
    "one-way.graph": ("3 2\n2 3\n1\n2\n", "line 2: vertex 1 names 3, and 3 does not name 1"),
    "short.graph": ("3 2\n2\n1\n", "expected 3 lines of neighbours, found 2"),
    "count.graph": ("2 2\n2\n1\n", "line 1: the header has 2 edges"),
    "table.feather": ("PAR1", "of a kind that is read: .csv"),
    "mac.txt": ("0 1\r1 2\r", "line 1: lines end in CR alone"),
    "mixed.txt": ("0 1\r\n" * 20000 + "1 2\r2 3\n", "line 20001: lines end in CR alone"),
    "broken.npz": ("no zip", "damaged"),
    "broken.pt": ("no zip", "damaged|is not read"),
    "other.bin": ("no graph", r"no file of dgl\.save_graphs"),
}


@pytest.mark.parametrize(("name", "case"), WRONG.items(), ids=WRONG)
def test_what_is_wrong_is_one_line_with_the_file_and_the_line(name, case, tmp_path):
    with pytest.raises((InputError, GraphFormatError), match=case[1]) as error:
        read(tmp_path, name, case[0])
    assert "\n" not in str(error.value) and name in str(error.value)


def test_files_of_columns_stand_in_a_dict_and_on_the_command_line(tmp_path, monkeypatch, capsys):
    """The same graph, whatever kind of file has its rows."""
    monkeypatch.chdir(tmp_path)
    feats, labels = np.arange(8, dtype=np.float32).reshape(4, 2), np.array([0, 1, 1, 0])
    (tmp_path / "e.txt").write_text(SNAP + rows(UP, "\t"))
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
        assert (graph.edges == UP).all() and not graph.directed and (found == feats).all()
        assert (graph.labels == labels).all()
    (tmp_path / "both.txt").write_text("0 1\n0 2\n1 0\n1 2\n2 0\n2 1\n3 3\n")  # in the order of the file
    assert (
        load_graph({"edge_index": "both.txt", "x": "x.npy"}).arc_order == load_graph("both.txt").arc_order == "sorted"
    )
    for file, message in (
        ("order.csv", "column id is not 0, 1, 2"),
        ("no.npy", "no such file"),
        ("e.doc", "of no kind that is read"),
        ("y", "no such file"),
    ):
        (tmp_path / "e.doc").write_text("1")
        with pytest.raises(InputError, match=message):
            load_graph({"edge_index": "e.txt", "x": file})
    words = ["e.txt", "--feats", "x.csv", "--labels", "y.txt", "--parts", "1", "--out", "parts"]
    monkeypatch.setattr(sys, "argv", ["distgnn", "partition", *words])
    assert main() == 0
    part = dg.partition.read_manifest("parts")
    assert part["name"] == "e" and part["graph"]["num_classes"] == 2 and part["graph"]["num_feats"] == 2
    monkeypatch.setattr(sys, "argv", ["distgnn", "partition", *words[:-1], "other", "--renumber"])
    assert main() == 2 and "in the order of ids from 0" in capsys.readouterr().err
