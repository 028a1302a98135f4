"""The first gradient of a 3-layer GraphSAGE with layer norm, dropout off: on ranks with our code, or in plain DGL.

    mpiexec -n 4 python tests/bench/end_to_end/first_gradient.py ours parts/ float32 64 ours.npz
    python tests/bench/end_to_end/first_gradient.py dgl ogbn-arxiv both ours.npz dgl.npz

`ours` draws weights with seed 0 and writes them ("weight.NAME") with their gradients ("grad.NAME") and the loss;
`dgl` takes the weights from that file and writes the gradients of DGL's layers on the whole graph in one process.
"""

import sys

import numpy as np
import torch
from program import DATA_ROOT


def ours(parts: str, dtype: str, hidden: str, out: str) -> None:
    """Loss and gradient on the ranks that are there."""
    import distgnn as dg
    from distgnn.train.gradients import GradientBuffer
    from distgnn.train.loss import rank_loss

    graph = dg.load(parts, dtype=dtype)
    torch.manual_seed(0)
    model = dg.nn.GraphSAGE(graph.num_feats, int(hidden), graph.num_classes, 3, dropout=0.0).to(graph.dtype)
    gradients = GradientBuffer(model, graph.comm)
    loss = rank_loss(graph, model(graph, graph.feats))
    loss.backward()
    gradients.sum()
    total = graph.comm.allreduce(loss.item())
    if graph.rank == 0:
        weights = {f"weight.{name}": tensor.numpy() for name, tensor in model.state_dict().items()}
        np.savez(out, loss=total, **weights, **_grads(model))


def dgl(source: str, direction: str, given: str, out: str) -> None:
    """The same in plain DGL, with the weights of the file `given`."""
    from dgl_reference import Stack

    from distgnn.datasets import load_graph
    from distgnn.system.other_libraries import import_dgl

    library = import_dgl()
    __import__("dgl.nn")
    with np.load(given) as file:
        state = {name[len("weight.") :]: torch.from_numpy(file[name]) for name in file if name.startswith("weight.")}
    data = load_graph(source, DATA_ROOT)
    graph = data.to_dgl(data.edge_list(direction))
    first, last = state["convs.0.fc_self.weight"], state["convs.2.fc_self.weight"]
    widths = [first.shape[1], first.shape[0], first.shape[0], last.shape[0]]
    model = Stack(library, "sage", widths, dropout=0.0, norm="layer").to(first.dtype)
    model.load_state_dict(state)
    rows = graph.ndata["train_mask"]
    logits = model(graph, graph.ndata["feat"].to(first.dtype))
    loss = torch.nn.functional.cross_entropy(logits[rows], graph.ndata["label"][rows])
    loss.backward()
    np.savez(out, loss=loss.item(), **_grads(model))


def _grads(model: torch.nn.Module) -> dict[str, np.ndarray]:
    return {f"grad.{name}": parameter.grad.numpy() for name, parameter in model.named_parameters()}


if __name__ == "__main__":
    {"ours": ours, "dgl": dgl}[sys.argv[1]](*sys.argv[2:])
