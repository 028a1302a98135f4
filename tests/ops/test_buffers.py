"""Buffers are free again as soon as nothing looks at them."""

import gc

import pytest
import torch
from cut_graphs import random_graph, whole_graph

from distgnn.config import ModelConfig
from distgnn.nn import model_for


@pytest.mark.parametrize("update", ["owners", "copies"])
@pytest.mark.parametrize("name", ["sage", "gcn", "gin", "gat", "gatv2", "gcn2", "appnp"])
def test_a_step_leaves_no_rows_to_the_garbage_collector(name, update, monkeypatch):
    """A cycle of references keeps rows until some later collection: memory grows by layers' rows in every step."""
    if update == "copies" and name not in ("sage", "gcn"):
        pytest.skip("runs with update on owners only")
    monkeypatch.setattr("distgnn.ops.buffers.SMALL", 1)
    graph = whole_graph(random_graph(), update=update)
    model = model_for(ModelConfig(name, 8, num_layers=4, num_heads=2), graph)
    model = model.to(graph.feats.dtype)
    held = []
    gc.collect()
    gc.disable()
    try:
        for _ in range(3):
            torch.sum(model(graph, graph.feats)).backward()
            buffers = graph.buffers
            held.append(sum(not buffers._is_free(place) for place in range(len(buffers._blocks))))
    finally:
        gc.enable()
    assert held[0] == held[1] == held[2]
