"""A table of everything that is wrong in a graph, at once."""

import networkx
import numpy as np

import distgnn as dg

PAIRS = np.array([[0, 1], [1, 2], [2, 0], [2, 3], [3, 4]])


def test_a_table_has_all_that_is_wrong_at_once(capsys):
    feats, weight = np.ones((5, 2)), np.ones(5)
    feats[[1, 3]], weight[4] = np.nan, 1e39
    columns = {"feats": feats, "edge_weight": weight, "labels": [0, 1, 2, -7, 0]}
    findings = dg.check_graph(PAIRS, **columns, train=[0, 99], valid_mask=[True] * 4)
    wrong = {one.field: one.count for one in findings.wrong}
    assert wrong == {"edge_weight": 1, "feats": 2, "labels": 1, "valid": 0, "train, valid, test": 1}
    table = capsys.readouterr().out
    assert table.startswith("finding ") and all(f"row {row} " in table for row in (1, 3, 4))
    assert [one.field for one in dg.check_graph([["ann", "bob"]]).wrong] == ["edges", "num_nodes"]
    assert not dg.check_graph(networkx.path_graph(4)).wrong
    assert dg.check_graph("no such graph").wrong
    findings = dg.check_graph(PAIRS, labels=[0, 1, -1, 0, 1], num_nodes=6, x=None)
    assert {one.field: one.count for one in findings if one.severity == "wrong"} == {"labels": 0}


def test_weights_whose_sums_no_float32_holds_are_named():
    """GCN divides by such a sum, which is infinite: its rows are 0, and the loss is flat."""
    for weight, named in ((1e38, True), (1e37, False)):
        findings = dg.check_graph([[0, 3], [1, 3], [2, 3], [4, 3]], edge_weight=np.full(4, weight, np.float32))
        assert any("weights of a vertex add up to 4e+38" in line for line in findings.lines()) == named
