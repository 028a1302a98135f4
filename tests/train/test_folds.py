"""Folds of the labelled vertices: the same on any ranks, of each class alike, and masks of training made of them."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from cut_graphs import random_graph
from mpi4py import MPI

import distgnn as dg
from distgnn.train.folds import fold_masks, folds_of


@pytest.mark.mpi(3)
def test_folds_do_not_depend_on_ranks(comm, shared_tmp_path):
    source = random_graph(4)
    source.labels[::5] = -1
    if comm.rank == 0:
        dg.partition_graph(source, comm.size, shared_tmp_path / "parts", say=lambda line: None)
    comm.Barrier()
    graph = dg.load(shared_tmp_path / "parts", say=None)
    mine = folds_of(graph.plain, 5, 7)
    labels = torch.from_numpy(source.labels)
    ids = {"owned_ids": np.arange(60), "num_owned": 60, "comm": MPI.COMM_SELF}
    whole = folds_of(SimpleNamespace(labels=labels, node_values=None, **ids), 5, 7)
    np.testing.assert_array_equal(mine, whole[graph.owned_ids])
    assert ((whole < 0) == (source.labels < 0)).all()
    for label in range(source.num_classes):
        counts = np.bincount(whole[source.labels == label], minlength=5)
        assert counts.max() - counts.min() <= 1
    graph.plain.set_splits(fold_masks(mine, 2, 5))
    assert graph.num_labelled("test") == int((whole == 2).sum()) == int(graph.test_mask.sum())
    assert torch.equal(graph.ndata["val_mask"].whole(), torch.from_numpy(whole == 3))
