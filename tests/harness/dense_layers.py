"""A layer and what follows it (bias, norm, ReLU, dropout) beside dense torch: rows and gradients."""

import numpy as np
import torch
from cut_graphs import dense_adjacency, dist_graph, gather_rows, random_graph

from distgnn import ops
from distgnn.comm import sum_over_ranks

CLOSE = {"float64": {"rtol": 1e-9, "atol": 1e-10}, "float32": {"rtol": 1e-3, "atol": 1e-4}}  # sums in another order


def leaves(width_in: int, width_out: int, num_nodes: int) -> dict[str, torch.Tensor]:
    random, weight, column = torch.Generator().manual_seed(0), (width_in, width_out), (width_out,)
    shapes = {"feats": (num_nodes, width_in), "neigh": weight, "own": weight, "attn": (2, width_out), "bias": column}
    shapes |= {"gamma": column, "beta": column, "loss": (num_nodes, width_out)}
    return {name: torch.randn(*shape, generator=random, dtype=torch.float64) for name, shape in shapes.items()}


def finished(z, values, norm: bool, mask) -> torch.Tensor:
    z = z + values["bias"]
    if norm:
        z = torch.nn.functional.layer_norm(z, z.shape[1:], values["gamma"], values["beta"])
    return torch.relu(z) * mask


def compare(comm, run, reference, widths, norm: bool, constant: bool, dtype: str = "float64"):
    """`run(graph, values, epilogue, norm)` on ranks against `reference(arcs, values)` on one, with gradients."""
    data = random_graph()
    graph = dist_graph(data, comm, dtype=dtype)
    whole = leaves(*widths, data.num_nodes)
    names = [name for name in whole if name != "loss" and not (constant and name == "feats")]
    mine = {name: value.clone().to(graph.dtype) for name, value in whole.items()}
    for name in ("feats", "loss"):
        mine[name] = mine[name][graph.owned_ids].clone()
    for values in (whole, mine):
        for name in names:
            values[name].requires_grad_()
    epilogue = ops.relu_dropout(graph, 0.4, site=5)
    out = run(graph, mine, epilogue, (mine["gamma"], mine["beta"]) if norm else None)
    (out * mine["loss"]).sum().backward()
    mask = torch.from_numpy(gather_rows(graph, ops.dropout(graph, torch.ones_like(mine["loss"]), 0.4, 5)))
    expected = finished(reference(torch.from_numpy(dense_adjacency(data)), whole), whole, norm, mask)
    (expected * whole["loss"]).sum().backward()
    np.testing.assert_allclose(gather_rows(graph, out.detach()), expected.detach().numpy(), **CLOSE[dtype])
    for name in names:
        if whole[name].grad is None:
            assert mine[name].grad is None, name
            continue
        grad = mine[name].grad.numpy()
        grad = gather_rows(graph, grad) if name == "feats" else sum_over_ranks(comm, grad)
        np.testing.assert_allclose(grad, whole[name].grad.numpy(), err_msg=name, **CLOSE[dtype])
