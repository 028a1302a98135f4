"""Typed graphs: views over all vertices where one type alone has a column, and what does not fit types."""

import numpy as np
import pytest

from distgnn.datasets import GraphData
from distgnn.datasets.findings.findings import Findings
from distgnn.errors import InputError


def test_labels_of_several_types_are_no_column_of_all(small_tables):
    authors = {"author": {"y": ["b", "a"], "train_mask": [True, False]}}
    graph = GraphData.from_types(small_tables(authors), findings=Findings())
    assert graph.labels is None and graph.type_classes == {"author": ("a", "b")}
    assert graph.typed["author"]["labels"].tolist() == [1, 0] and graph.train.tolist() == [3]
    values = GraphData.from_types(small_tables({"author": {"y": [0.5, float("nan")]}}))
    np.testing.assert_array_equal(values.node_values, np.float32([np.nan] * 3 + [0.5, np.nan]))


def test_a_random_split_and_scaled_features_are_those_of_each_type(small_tables):
    graph = GraphData.from_types(small_tables(), findings=Findings())
    split, scaled = graph.split_nodes(0.5, 0.25, 0.25), graph.normalize_feats()
    masks = [split.typed["paper"][f"{name}_mask"] for name in ("train", "valid", "test")]
    assert np.sum(masks, axis=0).max() == 1 and np.array_equal(np.flatnonzero(masks[0]), split.train)
    assert (scaled.typed["paper"]["feats"] == 0.25).all() and (graph.typed["paper"]["feats"] == 1).all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda graph, _: GraphData.from_pyg(graph.to_pyg(), directed=False), "leave directed=False out"),
        (lambda _, tables: GraphData.from_types(tables, y=[0, 1]), "labels: give a dict of columns by type, as {'pap"),
        (lambda _, tables: GraphData.from_types(tables, y={"poet": [0]}), "labels of 'poet', which this graph does n"),
        (lambda graph, _: graph.split_links(), "has relations: hold edges of one out yourself"),
        (lambda graph, _: graph.edge_list("stored", "add"), "a self-loop has no relation"),
    ],
)
def test_fields_that_do_not_fit_types_are_refused(call, message, small_tables):
    pytest.importorskip("torch_geometric")
    with pytest.raises(InputError, match=message):
        call(GraphData.from_types(small_tables()), small_tables())
