"""The rows of a typed graph that a task is on: columns, splits and outputs of one type, or one line."""

import numpy as np
import pytest
import torch
from against_dgl import default_float64
from cut_graphs import dist_graph, random_graph
from typed_parts import random_typed, typed_graph

from distgnn.errors import InputError
from distgnn.graph.task_rows import rows_of_task


@pytest.mark.mpi(3)
@default_float64()
def test_they_are_the_vertices_of_one_type(comm):
    whole = random_typed()
    graph = typed_graph(whole, comm)
    rows, papers = rows_of_task(graph), whole.columns["paper"]  # the one type with labels
    assert rows is rows_of_task(graph, "paper") is rows_of_task(graph)
    assert (rows.num_global_nodes, rows.num_classes, rows.multilabel) == (23, 3, False)
    np.testing.assert_array_equal(rows.gather_rows(rows.labels, root=None), papers["labels"])
    np.testing.assert_array_equal(rows.gather_rows(rows.local_feats["paper"], root=None), papers["feats"])
    assert rows.num_labelled("train") == papers["train_mask"].sum()
    rows.set_splits({"train": rows.owned_ids < 5, "valid": rows.owned_ids == 7, "test": rows.owned_ids > 20})
    assert [rows.num_labelled(split) for split in ("train", "valid", "test")] == [5, 1, 2]
    assert torch.equal(graph["paper"].train_mask.whole(), torch.arange(23) < 5)
    assert torch.equal(rows.picked(graph.x_dict).whole(), graph["paper"].x.whole())


@pytest.mark.mpi(2)
@default_float64()
def test_what_is_no_row_of_the_task_is_refused(comm):
    graph, plain = typed_graph(random_typed(), comm), dist_graph(random_graph(), comm)
    rows = rows_of_task(graph, "paper")
    refused = {
        "the model gave rows of author, .* target= another type": lambda: rows.picked({"author": graph["author"].x}),
        "the model gave rows of type 'author'": lambda: rows.picked(graph["author"].x),
        "this graph was loaded without types, or has one": lambda: rows_of_task(plain, "paper"),
    }
    for says, run in refused.items():
        with pytest.raises(InputError, match=says) as error:
            run()
        assert error.value.agreed
    assert rows_of_task(plain) is plain
