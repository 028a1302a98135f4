"""A convolution with what follows it, against dense torch on any number of ranks; and its plans."""

from types import SimpleNamespace

import pytest
import torch
from dense_layers import compare

from distgnn import ops
from distgnn.ops.aggregation.convolve import Plan, choose_plan
from distgnn.ops.rowwise.chain import enter, leave


@pytest.mark.mpi(3)
@pytest.mark.parametrize("widths", [(4, 8), (8, 8), (8, 4)], ids=["widens", "equal", "narrows"])
@pytest.mark.parametrize("norm", [False, True], ids=["bare", "norm"])
@pytest.mark.parametrize("constant", [False, True], ids=["hidden", "constant"])
def test_convolution_against_dense_torch(comm, widths, norm, constant):
    """Products of float32 rows are a kernel of ours, of float64 rows torch's."""
    dtype = "float64" if norm else "float32"

    def run(graph, values, epilogue, parameters):
        spec = ops.ConvSpec((None, graph.degree_scale("in", -1)), None, epilogue)
        weights = values["neigh"], values["own"], values["bias"]
        return leave(ops.convolve(graph, enter(graph, values["feats"]), *weights, spec, parameters), alone=True)

    def reference(arcs, values):
        mean = arcs / arcs.sum(1, keepdim=True).clamp(min=1)
        return values["feats"] @ values["own"] + mean @ values["feats"] @ values["neigh"]

    compare(comm, run, reference, widths, norm, constant, dtype=dtype)


@pytest.mark.parametrize(
    ("widths", "settings", "plan"),
    [
        ((5, 9), {"needs_grad": False}, Plan.CONSTANT),
        ((9, 5), {"needs_grad": False}, Plan.PRODUCT_FIRST),
        ((9, 5), {"needs_grad": False, "is_input": True}, Plan.CONSTANT),
        ((9, 5), {"needs_grad": False, "transform_first": False}, Plan.CONSTANT),
        ((9, 5), {}, Plan.PRODUCT_FIRST),
        ((9, 5), {"transform_first": False}, Plan.KEEP_AGGREGATE),
        ((5, 9), {}, Plan.KEEP_AGGREGATE),
        ((5, 5), {"exact": False}, Plan.KEEP_AGGREGATE),
        ((5, 5), {"transform_first": False}, Plan.KEEP_AGGREGATE),
        ((5, 5), {}, Plan.AGGREGATE_ONLY),
    ],
)
def test_plans_are_those_of_the_table(widths, settings, plan):
    settings = {"needs_grad": True, "is_input": False, "transform_first": True, "exact": True} | settings
    graph = SimpleNamespace(
        transform_first=settings["transform_first"],
        narrows=lambda wide, narrow: settings["transform_first"] and wide > narrow,
        is_input=lambda rows: settings["is_input"],
        aggregates_exactly=settings["exact"],
    )
    feats = torch.zeros(3, widths[0], requires_grad=settings["needs_grad"])
    assert choose_plan(graph, feats, *widths) is plan
