"""Layers behind one another as one differentiable function: the schedule, and whose memory is written over."""

import pytest
import torch
from cut_graphs import random_graph, whole_graph

from distgnn import ops
from distgnn.config import ModelConfig
from distgnn.nn import model_for
from distgnn.ops.rowwise.chain import enter, leave

HEAD = """| step | reads | writes | keeps | x in the backward pass |
|---|---|---|---|---|
"""
SCHEDULES = {
    ("sage", "layer", False): """| convolve CONSTANT | feats | y1 | z, statistics | kept |
| convolve AGGREGATE_ONLY | y1 | y2 over dead rows | z, statistics | made again |
| convolve PRODUCT_FIRST | y2 | y3 | – | made again |""",
    ("sage", "layer", True): """| convolve CONSTANT | feats | y1 | statistics | kept |
| convolve AGGREGATE_ONLY | y1 | y2 over dead rows | z, statistics | made again |
| convolve PRODUCT_FIRST | y2 | y3 | – | made again |""",
    ("sage", "none", False): """| convolve CONSTANT | feats | y1 | y | kept |
| convolve AGGREGATE_ONLY | y1 | y2 | y | kept |
| convolve PRODUCT_FIRST | y2 | y3 | – | kept |""",
    ("gcn", "batch", False): """| convolve CONSTANT | feats | y1 | – | kept |
| columnnorm | y1 | y2 | – | kept |
| convolve AGGREGATE_ONLY | y2 | y3 | – | made again |
| columnnorm | y3 | y4 over dead rows | – | kept |
| convolve PRODUCT_FIRST | y4 | y5 | – | made again |""",
    ("gat", "layer", False): """| attend | feats | y1 | z, statistics | kept |
| attend | y1 | y2 over dead rows | z, statistics | made again |
| attend | y2 | y3 over dead rows | y | made again |""",
    ("gcn2", "layer", False): """| linear | feats | y1 | y | kept |
| mixed | y1 | y2 | – | not read |
| linear | y2 | y3 | z, statistics | kept |
| mixed | y3 | y4 | – | not read |
| linear | y4 | y5 over dead rows | z, statistics | kept |
| mixed | y5 | y6 | – | not read |
| linear | y6 | y7 over dead rows | z, statistics | kept |
| linear | y7 | y8 | – | made again |""",
}


@pytest.mark.parametrize(("name", "norm", "remat"), SCHEDULES)
def test_a_stack_has_this_schedule(name, norm, remat):
    """It says what lives up to the backward pass: tests/ops/test_recompute.py counts it."""
    graph = whole_graph(random_graph(1), dtype="float32")
    logits = model_for(ModelConfig(name, 128, 3, norm=norm, remat=remat), graph).train()(graph, graph.feats)
    schedule = logits.grad_fn.chain.table()
    print(schedule)
    assert schedule == HEAD + SCHEDULES[name, norm, remat]


def two_steps(graph, feats, weight):
    norm = torch.ones(8), torch.zeros(8)
    rows = ops.linear(graph, enter(graph, feats), weight, epilogue=ops.Epilogue(relu=True), norm=norm)
    return ops.linear(graph, rows, weight, epilogue=ops.Epilogue(relu=True))


@pytest.mark.parametrize("alone", [False, True])
def test_the_gradient_of_a_result_is_written_over_where_nobody_else_has_it(alone):
    graph = whole_graph(random_graph(1), dtype="float32")
    out = leave(two_steps(graph, graph.feats, torch.eye(8).requires_grad_()), alone=alone)
    grad = torch.randn_like(out)
    kept = grad.clone()
    out.backward(grad)
    assert torch.equal(grad, kept) is not alone


def test_a_result_that_is_written_to_is_made_again():
    graph = whole_graph(random_graph(1), dtype="float32")
    found = []
    for written in (False, True):
        weight = torch.linspace(-1, 2, 64).view(8, 8).requires_grad_()
        out = leave(two_steps(graph, graph.feats, weight))
        grad = torch.ones_like(out)
        if written:
            with torch.no_grad():
                out.zero_()
        out.backward(grad)
        found.append(weight.grad)
    assert torch.equal(*found) and found[0].abs().sum() > 0


def test_rows_of_a_chain_that_was_left_are_refused():
    graph = whole_graph(random_graph(1), dtype="float32")
    weight = torch.eye(8).requires_grad_()
    rows = two_steps(graph, graph.feats, weight)
    leave(rows)
    with pytest.raises(ValueError, match="have left their chain"):
        ops.linear(graph, rows, weight)
