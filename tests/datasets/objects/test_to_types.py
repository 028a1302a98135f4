"""Typed graphs as HeteroData and as typed DGLGraphs: there and back, and with reverse relations."""

import numpy as np
import pytest
import scipy.sparse
import torch
from typed_graphs import same_hetero, typed_graph, typed_tables

from distgnn.datasets import GraphData
from distgnn.datasets.findings.findings import Findings
from distgnn.errors import InputError
from distgnn.fitting.source import content_of_graph
from distgnn.system.other_libraries import import_dgl


@pytest.mark.parametrize("seed", range(8))
def test_there_and_back_through_pyg_and_dgl(seed):
    """Every column comes back bit by bit, and types and relations in their order; DGL orders both by name."""
    dgl, graph = import_dgl(), typed_graph(seed)
    data = graph.to_pyg()
    assert data.validate() and tuple(data.metadata()[0]) == graph.types and tuple(data.edge_types) == graph.relations
    again = GraphData.from_pyg(data, findings=Findings())
    same_hetero(again.to_pyg(), data)
    tables = typed_tables(seed, sparse=False) | {"field": {"x": data["field"].x}}
    named = {"name": "typed", "findings": again.findings}
    expected = content_of_graph(GraphData.from_types(tables, **named))
    assert content_of_graph(GraphData.from_pyg(data, **named)) == expected
    theirs = graph.to_dgl()
    back = GraphData.from_dgl(theirs, findings=again.findings)
    assert set(back.types) == set(graph.types) and set(back.relations) == set(graph.relations)
    for kind in graph.types:
        columns = back.typed.get(kind, {})
        assert columns.keys() == graph.typed.get(kind, {}).keys()
        for name, column in columns.items():
            expected = graph.typed[kind][name]
            expected = expected.toarray() if scipy.sparse.issparse(expected) else expected
            np.testing.assert_array_equal(column, expected, err_msg=f"{kind}.{name}")
    for relation in graph.relations:
        assert torch.equal(torch.stack(theirs.edges(etype=relation, order="eid")), data[relation].edge_index)
        for name, column in graph.relation_columns.get(relation, {}).items():
            np.testing.assert_array_equal(back.relation_columns[relation][name], column)
    assert dgl.to_homogeneous(theirs).num_edges() == graph.num_edges


def test_reverse_relations_are_those_of_to_undirected():
    """PyG's own come as they are; `both` and `reversed` make them, with the columns of their edges."""
    transforms = pytest.importorskip("torch_geometric.transforms")
    graph = typed_graph(1)
    plain = graph.to_pyg()
    del plain["paper", "cites", "paper"], plain["field", "of", "paper"]  # PyG merges these, or drops their columns
    graph = GraphData.from_pyg(plain, findings=graph.findings)
    theirs = transforms.ToUndirected(merge=False)(graph.to_pyg())
    same_hetero(graph.to_pyg(graph.edge_list("both")), theirs)
    same_hetero(GraphData.from_pyg(theirs, findings=graph.findings).to_pyg(), theirs)
    assert graph.to_pyg(graph.edge_list("reversed")).edge_types == theirs.edge_types[len(graph.relations) :]
    with pytest.raises(InputError, match="relation paper___rev_writes___author is there already, and direction 'both'"):
        both = GraphData.from_pyg(theirs, findings=graph.findings)
        both.to_pyg(both.edge_list("both"))
