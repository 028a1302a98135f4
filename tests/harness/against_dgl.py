"""A layer on P ranks beside the same layer on DGL's or PyG's whole graph: outputs and every gradient, gathered."""

import copy
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from cut_graphs import dist_graph, gather_rows

from distgnn.comm import sum_over_ranks
from distgnn.graph.face.row_graph import with_rows
from distgnn.rows import rows_of

TOLERANCE = {"rtol": 1e-9, "atol": 1e-10}  # float64 sums in another order, through two products


@contextmanager
def default_float64() -> Iterator[None]:
    """For layers that make tensors of torch's default dtype on their way; also a decorator."""
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(torch.float32)


@dataclass
class Inputs:
    """What a layer is run on, of the whole graph, or one rank's rows of it: rows of vertices, and of arcs.

    `edge_weight` [A] positive, `edge_feats` [A, 5], `etypes` [A] in 0…2, `out_weight` [N, 64] of the loss.
    """

    feats: torch.Tensor
    edge_weight: torch.Tensor
    edge_feats: torch.Tensor
    etypes: torch.Tensor
    out_weight: torch.Tensor

    @classmethod
    def random(cls, num_nodes: int, num_arcs: int, width: int = 8, seed: int = 11) -> "Inputs":
        random = np.random.default_rng(seed)
        arrays = (
            random.standard_normal((num_nodes, width)),
            0.5 + random.random(num_arcs),
            random.standard_normal((num_arcs, 5)),
            random.integers(0, 3, num_arcs),
            random.standard_normal((num_nodes, 64)),
        )
        return cls(*(torch.from_numpy(array) for array in arrays))

    def rows(self, vertices: np.ndarray, arcs: np.ndarray) -> "Inputs":
        """Those of some vertices and arcs."""
        columns = (self.edge_weight, self.edge_feats, self.etypes)
        return Inputs(self.feats[vertices], *(column[arcs] for column in columns), self.out_weight[vertices])

    def trainable(self) -> "Inputs":
        for column in (self.feats, self.edge_weight, self.edge_feats):
            column.requires_grad_()
        return self


@dataclass
class Outcome:
    """Output [N, ...], gradients of parameters by name, and of input rows and arc rows, of the whole graph."""

    out: np.ndarray
    parameters: dict[str, np.ndarray]
    feats: np.ndarray
    edge_weight: np.ndarray
    edge_feats: np.ndarray


def run_whole(data, model, inputs: Inputs, call: Callable, edges=None, library: str = "dgl") -> Outcome:
    """In plain DGL (or PyG). `inputs` has rows by vertex id and by global arc id."""
    edges = edges or data.edge_list()
    arc_ids = edges.arcs()[2]
    everything = inputs.rows(np.arange(data.num_nodes), arc_ids).trainable()
    whole = data.to_dgl(edges) if library == "dgl" else data.to_pyg(edges)
    out = _backward(whole, model, everything, call)
    size = len(inputs.edge_weight)
    grads = [_by_id(arc_ids, rows, size) for rows in (everything.edge_weight, everything.edge_feats)]
    return Outcome(out, _parameters(model), _grad(everything.feats), *grads)


def run_ranks(graph, model, inputs: Inputs, call: Callable) -> Outcome:
    """On the ranks of a DistGraph, gathered: the same on every rank."""
    model.zero_grad()
    arc_ids = graph.local.arc_ids
    mine = inputs.rows(graph.owned_ids, arc_ids).trainable()
    out = gather_rows(graph, _backward(graph, model, mine, call))
    size = len(inputs.edge_weight)
    arcs = [sum_over_ranks(graph.comm, _by_id(arc_ids, rows, size)) for rows in (mine.edge_weight, mine.edge_feats)]
    parameters = {name: sum_over_ranks(graph.comm, grad) for name, grad in _parameters(model).items()}
    return Outcome(out, parameters, gather_rows(graph, _grad(mine.feats)), *arcs)


def run_rows(graph, model, inputs: Inputs, call: Callable) -> Outcome:
    """With rows of all ranks, on a graph as `dg.load` gives it: nothing is summed or gathered here."""
    model.zero_grad()
    arc_ids, ends = graph.local.arc_ids, (graph.vertex_space, graph.arc_space)
    mine = inputs.rows(graph.owned_ids, arc_ids)
    columns = zip(vars(mine).values(), (ends[0], ends[1], ends[1], ends[1], ends[0]), strict=True)
    rows = Inputs(*(rows_of(column, space) for column, space in columns)).trainable()
    out = _backward(graph, model, rows, call)
    size = len(inputs.edge_weight)
    arcs = [sum_over_ranks(graph.comm, _by_id(arc_ids, one.inner, size)) for one in (rows.edge_weight, rows.edge_feats)]
    feats = torch.zeros_like(rows.feats) if rows.feats.grad is None else rows.feats.grad
    return Outcome(out, _parameters(model), feats.numpy(), *arcs)


def same(left: Outcome, right: Outcome, **tolerance) -> None:
    """Equal up to rounding, in everything."""
    tolerance = tolerance or TOLERANCE
    assert left.parameters.keys() == right.parameters.keys()
    for name, grad in left.parameters.items():
        np.testing.assert_allclose(grad, right.parameters[name], err_msg=name, **tolerance)
    for name in ("out", "feats", "edge_weight", "edge_feats"):
        np.testing.assert_allclose(getattr(left, name), getattr(right, name), err_msg=name, **tolerance)


def made(make: Callable) -> torch.nn.Module:
    """A layer in float64 with the same weights at each call, without what its library warns of."""
    torch.manual_seed(4)
    with default_float64(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return make().double()


def same_layer(comm, data, layer, call: Callable, library: str = "dgl", cut=None):
    """Raise AssertionError unless a layer gives on rows what it gives on the whole graph. Returns: that of rows."""
    inputs, plain = Inputs.random(data.num_nodes, num_arc_ids(data.edge_list())), copy.deepcopy(layer)
    with default_float64():
        expected = run_whole(data, plain, inputs, call, library=library)
        graph = with_rows(dist_graph(data, comm, cut, debug=True))
        same(run_rows(graph, layer, inputs, call), expected)
    for name, buffer in plain.named_buffers():
        torch.testing.assert_close(dict(layer.named_buffers())[name], buffer, msg=name)
    return graph


def num_arc_ids(edges) -> int:
    """One more than the largest global arc id."""
    return edges.num_edges * (2 if edges.two_way else 1)


def _backward(graph, model, inputs: Inputs, call: Callable) -> np.ndarray:
    out = call(model, graph, inputs)
    rows = out.reshape(len(out), out.shape[1:].numel())
    (rows * inputs.out_weight[:, : rows.shape[1]]).sum().backward()
    return out.detach().numpy()


def _parameters(model) -> dict[str, np.ndarray]:
    return {name: _grad(parameter) for name, parameter in model.named_parameters()}


def _grad(rows: torch.Tensor) -> np.ndarray:
    return (torch.zeros_like(rows) if rows.grad is None else rows.grad).numpy()


def _by_id(arc_ids: np.ndarray, rows: torch.Tensor, size: int) -> np.ndarray:
    out = np.zeros((size, *rows.shape[1:]))
    out[arc_ids] = _grad(rows)
    return out
