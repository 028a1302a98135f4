"""Edge lists as text: columns, names in place of ids, headers; what is wrong is named by its line."""

import numpy as np
import pytest

import distgnn as dg
from distgnn.datasets import load_graph
from distgnn.errors import InputError
from distgnn.partition.repartition import load_whole

PAIRS = np.array([[0, 1], [1, 2], [2, 3], [3, 0], [1, 3]])


COLUMNS = {
    "weight.csv": ("source,target,weight,since\n0,1,0.5,7\n1,2,2,8\n", [0.5, 2], "left out: since"),
    "gephi.csv": ("Source;Target;Id;Weight\n0;1;0;0.5\n1;2;1;2\n", [0.5, 2], "left out: id"),
    "third.txt": ("0 1 0.5\n1 2 2\n", [0.5, 2], "edge_weight ← column 3"),
    "time.txt": ("0 1 1217567877\n1 2 1217567999\n", None, "column 3 (times, 1217567877 to 1217567999)"),
    "out.konect": ("% asym weighted\n1 2\t3 1217567877\n2 3\t4 1217567878\n", [3, 4], "left out: column 4 (times"),
    "text.csv": ("source,target,kind\n0,1,likes\n1,2,hates\n", None, "left out: kind"),
}


@pytest.mark.parametrize(("name", "case"), COLUMNS.items(), ids=COLUMNS)
def test_columns_beside_the_ends_are_weights_or_named(name, case, read):
    content, weight, says = case
    graph, lines = read(name, content)
    assert graph.edges.tolist() == [[0, 1], [1, 2]]
    assert (None if graph.edge_weight is None else graph.edge_weight.tolist()) == weight
    assert any(says in line for line in lines) and ("no weights" in lines[0]) == (weight is None)


@pytest.mark.parametrize("ids", [np.array(["ann", "böb", "eve", "zoë"]), 10**17 + PAIRS[:4, 0]], ids=["U", "i"])
def test_names_are_kept_to_the_partition_and_back(ids, read, tmp_path):
    text = "source,target,weight\n" + "".join(f"{ids[u]},{ids[v]},2\n" for u, v in PAIRS)
    graph, lines = read("named.csv", text, renumber=True)
    assert graph.node_names.astype(ids.dtype).tolist() == sorted(ids.tolist()) and "ids renumbered, from" in lines[0]
    assert graph.edges.tolist() == PAIRS.tolist() and graph.edge_weight.tolist() == [2] * 5
    dg.partition_graph(str(tmp_path / "named.csv"), 2, tmp_path / "parts", "random", renumber=True, say=print)
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
def test_names_that_are_no_text_are_refused_before_two_become_one(line, says, refused):
    refused("names.csv", line, rf"names\.csv: line [12]: is no text in UTF-8 \({says}", renumber=True)


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
def test_no_edge_is_lost_to_a_header_and_no_column_to_a_separator(name, case, renumber, read):
    content, edges, weight = case
    graph, lines = read(name, content, renumber=renumber)
    assert graph.edges.tolist() == edges and not any("left out" in line for line in lines)
    assert (None if graph.edge_weight is None else graph.edge_weight.tolist()) == weight


@pytest.mark.parametrize("written", ["007 7", "7.0 7", "+7 7", "-0 0", "12345678901234567890 7"])
@pytest.mark.parametrize("weight", ["", " 0.5", " x"])
def test_renumbered_texts_are_one_vertex_only_where_they_are_one_text(written, weight, read):
    graph, _ = read("names.txt", f"3 4{weight}\n{written}{weight}\n", renumber=True)
    assert graph.num_nodes == 4 and set(written.split()) < set(graph.node_names.tolist())
    plain, _ = read("plain.txt", f"10 20{weight}\n-3 0{weight}\n", renumber=True)
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
    "mac.txt": ("0 1\r1 2\r", "line 1: lines end in CR alone"),
    "mixed.txt": ("0 1\r\n" * 20000 + "1 2\r2 3\n", "line 20001: lines end in CR alone"),
}


@pytest.mark.parametrize(("name", "case"), WRONG.items(), ids=WRONG)
def test_what_is_wrong_is_one_line_with_the_file_and_the_line(name, case, refused):
    refused(name, *case)
