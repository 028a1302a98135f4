"""What a file is understood as: both arcs of an edge or one, ids from 0 or 1, and the line that says so."""

import gzip

import numpy as np
import pytest

PAIRS = np.array([[0, 1], [1, 2], [2, 3], [3, 0], [1, 3]])
UP = np.array([[0, 1], [0, 3], [1, 2], [1, 3], [2, 3]])  # PAIRS as undirected edges


def rows(pairs, sep=" ", first=0, line="{u}{sep}{v}\n"):
    return "".join(line.format(u=u + first, v=v + first, sep=sep) for u, v in pairs)


SNAP = "# Undirected graph: toy.txt\n# Nodes: 4 Edges: 5\n# FromNodeId\tToNodeId\n" + rows(PAIRS, "\t")
TEXTS = {
    "snap.txt": (SNAP, PAIRS, "undirected, ids from 0"),
    "snap.txt.gz": (gzip.compress(SNAP.encode()), PAIRS, "undirected"),
    "out.packed.gz": (gzip.compress(("% asym\n" + rows(PAIRS, " ", 1)).encode()), PAIRS, "directed, ids from 1"),
    "out.konect": ("% sym unweighted\n% 5 4 4\n" + rows(PAIRS, "\t", 1), PAIRS, "undirected, ids from 1"),
    "header.csv": ("id_1,id_2\n" + rows(PAIRS, ","), PAIRS, "directed, ids from 0"),
    "quoted.csv": ('"src","dst"\n' + rows(PAIRS, line='"{u}","{v}"\n'), PAIRS, "directed, ids from 0"),
    "index.csv": (",source,target\n" + rows(PAIRS, line="7,{u},{v}\n"), PAIRS, "directed, ids from 0"),
    "rows.tsv": ('"to"\t"from"\n' + rows(PAIRS, line="7\t{v}\t{u}\n"), PAIRS, "directed, ids from 0"),
    "both.tsv": (rows([*PAIRS, *PAIRS[:, ::-1]], "\t"), PAIRS, "undirected, stored both ways"),
    "metis.graph": ("% by hand\n4 5\n2 4\n1 3 4\n2 4\n1 2 3\n", UP, "undirected, stored both ways, ids from 1"),
}


@pytest.mark.parametrize(("name", "case"), TEXTS.items(), ids=TEXTS)
def test_texts_are_read_as_they_are_downloaded(name, case, read):
    content, edges, says = case
    graph, lines = read(name, content)
    assert sorted(map(tuple, graph.edges.tolist())) == sorted(map(tuple, edges.tolist()))
    assert graph.directed == says.startswith("directed") and graph.num_nodes == 4
    for text in (says, "4 vertices, 5 edges", "0 duplicates, 0 self-loops, 0 isolated"):
        assert text in lines[0]
